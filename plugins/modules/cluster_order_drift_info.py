#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_drift_info
short_description: Show what differs between a repository, a hub and its clusters
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Compares the orders in the files of a repository with those on the hub, and those with their clusters.
  - Names the fields that differ, and never their values.
options:
  namespaces:
    description: The namespaces of the hub to compare. Without them, those that have a folder in the repository.
    type: list
    elements: str
    default: []
seealso:
  - module: openfleet.clusters.cluster_order_proposal
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
  - openfleet.clusters.forge
"""

EXAMPLES = r"""
- name: Compare the repository with the hub
  openfleet.clusters.cluster_order_drift_info:
    forge: gitea
    forge_url: "{{ forge_url }}"
    forge_token: "{{ forge_token }}"
    repository: platform/clusters
  register: compared

- name: Show what differs
  ansible.builtin.debug:
    msg: "{{ compared.orders | rejectattr('in_sync') }}"
"""

RETURN = r"""
in_sync:
  description: Whether repository, hub and clusters agree for every order.
  returned: success
  type: bool
  sample: false
orders:
  description: The orders of the repository and of the hub, sorted by namespace and name.
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the order.
      type: str
      returned: always
      sample: orders
    name:
      description: Name of the order.
      type: str
      returned: always
      sample: demo
    in_sync:
      description: Whether file, hub and cluster agree.
      type: bool
      returned: always
      sample: false
    state:
      description:
        - V(InSync), V(Different), V(MissingOnHub), V(OnlyOnHub) or V(InvalidFile), for the file and the hub.
      type: str
      returned: always
      sample: Different
    path:
      description: The file in the repository; empty if there is none.
      type: str
      returned: always
      sample: orders/orders/demo.yaml
    hub:
      description: Fields that differ between the file and the hub.
      type: list
      elements: str
      returned: always
      sample: [nodeRequests, templateParameters.version]
    cluster:
      description: What the cluster lacks of the order on the hub.
      type: list
      elements: str
      returned: always
      sample: ["NodesReady: 2 of 3 nodes ready"]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import FORGE, KUBERNETES, ORDERS, Spec

SPEC: Spec = {"namespaces": {"type": "list", "elements": "str", "default": []}}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | FORGE | SPEC)
