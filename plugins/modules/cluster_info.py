#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Look at a cluster, whatever its provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It tells where a cluster stands, from its provider and not from its order, and how to reach it.
options:
  dns:
    description: Whether to tell the domain of the cluster's applications as RV(dns).
    type: bool
    default: false
  with_kubeconfig:
    description:
      - Whether to read the kubeconfig of the cluster's administrator into RV(cluster_kubeconfig).
      - The result of the task is then hidden, and is there only for the variable that registers it.
    type: bool
    default: false
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster
  - module: openfleet.clusters.cluster_order_info
"""

EXAMPLES = r"""
- name: See how the cluster of an order is
  openfleet.clusters.cluster_info:
    cluster_order: "{{ cluster_order }}"
    provider: "{{ cluster_provider }}"
  register: found

- name: Say where it stands
  ansible.builtin.debug:
    msg: "{{ found.cluster.status }}: {{ found.cluster.status_details }}"
"""

RETURN = r"""
exists:
  description: Whether there is such a cluster.
  returned: success
  type: bool
  sample: true
cluster:
  description: The cluster as its provider sees it, with the fields of RV(openfleet.clusters.cluster#module:cluster).
  returned: success
  type: dict
dns:
  description: The domain that the cluster's applications are below.
  returned: if O(dns=true)
  type: str
  sample: apps.demo.example.com
cluster_kubeconfig:
  description: The content of the kubeconfig. It is not shown, only registered.
  returned: if O(with_kubeconfig=true)
  type: dict
kubeconfig_version:
  description: Changes when the kubeconfig does.
  returned: if O(with_kubeconfig=true)
  type: str
  sample: "4711"
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    CLUSTER,
    CLUSTER_RULES,
    KUBERNETES,
    ORDERS,
    Spec,
)

SPEC: Spec = {
    **CLUSTER,
    "dns": {"type": "bool", "default": False},
    "with_kubeconfig": {"type": "bool", "default": False},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
