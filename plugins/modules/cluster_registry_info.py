#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_registry_info
short_description: Read registries of clusters
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns registries with their clusters and the last known health of each. It sends no request to the clusters; use
    O(openfleet.clusters.cluster_registry#module:state=checked) to check them.
  - Without O(name) it returns all registries of O(namespace), or of all namespaces. It then skips an invalid registry,
    with a warning that names it.
options:
  name:
    description: Name of the registry, with O(namespace). The task does not fail if it does not exist.
    type: str
  namespace:
    description: Namespace of the registries.
    type: str
  kind:
    description:
      - The form of the registries. A C(ConfigMap) needs the label C(ramendr.openshift.io/cluster-registry=true).
    type: str
    choices: [ClusterRegistry, ConfigMap]
    default: ClusterRegistry
seealso:
  - module: openfleet.clusters.cluster_registry
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Read one registry
  openfleet.clusters.cluster_registry_info:
    name: peers
    namespace: dr
  register: one

- name: Show the unreachable clusters
  ansible.builtin.debug:
    msg: "{{ one.registries | map(attribute='clusters') | flatten | selectattr('reachable', 'false') | map(attribute='name') }}"

- name: Read all registries
  openfleet.clusters.cluster_registry_info:
  register: listed

- name: Show the clusters whose credentials need attention
  ansible.builtin.debug:
    msg: "{{ listed.registries | map(attribute='clusters') | flatten | selectattr('reason', 'in', reasons) | map(attribute='name') }}"
  vars:
    reasons: [CredentialsExpiring, Unauthorized, SecretNotFound, BadKubeconfig]
"""

RETURN = r"""
registries:
  description:
    - The registries, sorted by namespace and name, each with the fields of
      RV(openfleet.clusters.cluster_registry#module:registry).
  returned: success
  type: list
  elements: dict
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "kind": {"type": "str", "choices": ["ClusterRegistry", "ConfigMap"], "default": "ClusterRegistry"},
}
RULES: dict[str, Any] = {"required_by": {"name": ["namespace"]}}

if __name__ == "__main__":
    main(KUBERNETES | SPEC, RULES)
