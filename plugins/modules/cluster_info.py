#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Get the state of a cluster with any provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Reads the state of a cluster from its provider, not from its order.
options:
  dns:
    description: Whether to return the domain of the cluster's applications in RV(dns).
    type: bool
    default: false
  with_kubeconfig:
    description:
      - Whether to return the kubeconfig of the administrator in RV(cluster_kubeconfig).
      - Ansible then hides the result of the task. Register it to use it.
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
- name: Get the cluster of an order
  openfleet.clusters.cluster_info:
    cluster_order: "{{ cluster_order }}"
    provider: "{{ cluster_provider }}"
  register: found

- name: Show its status
  ansible.builtin.debug:
    msg: "{{ found.cluster.status }}: {{ found.cluster.status_details }}"
"""

RETURN = r"""
exists:
  description: Whether the cluster exists.
  returned: success
  type: bool
  sample: true
cluster:
  description: The cluster as its provider observes it, with the fields of
    RV(openfleet.clusters.cluster#module:cluster).
  returned: success
  type: dict
dns:
  description: Domain of the cluster's applications.
  returned: if O(dns=true)
  type: str
  sample: apps.demo.example.com
cluster_kubeconfig:
  description: Content of the kubeconfig. Never printed.
  returned: if O(with_kubeconfig=true)
  type: dict
kubeconfig_version:
  description: Version of the kubeconfig. It changes with the content.
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
