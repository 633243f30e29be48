#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_registry_info
short_description: Look at registries of clusters
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Tells of each registry which clusters it names, and how each of them was found last. The clusters themselves are not asked, that is
    what O(openfleet.clusters.cluster_registry#module:state=checked) is for.
  - Without O(name), of all registries in O(namespace) or everywhere. One that cannot be read is left out then, with a warning that
    names it.
options:
  name:
    description: Name of the registry, with O(namespace). It is no failure if there is none.
    type: str
  namespace:
    description: Namespace of the registry, or of those to list.
    type: str
  kind:
    description: The form of the registries. A C(ConfigMap) is one if it has the label C(ramendr.openshift.io/cluster-registry=true).
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
- name: Look at one registry
  openfleet.clusters.cluster_registry_info:
    name: peers
    namespace: dr
  register: found

- name: Say which clusters cannot be reached
  ansible.builtin.debug:
    msg: "{{ found.registries | map(attribute='clusters') | flatten | selectattr('reachable', 'false') | map(attribute='name') }}"

- name: Look at all registries
  openfleet.clusters.cluster_registry_info:
  register: everywhere

- name: Say whose credentials need attention
  ansible.builtin.debug:
    msg: "{{ everywhere.registries | map(attribute='clusters') | flatten | selectattr('reason', 'in', wanted) | map(attribute='name') }}"
  vars:
    wanted: [CredentialsExpiring, Unauthorized, SecretNotFound, BadKubeconfig]
"""

RETURN = r"""
registries:
  description: The registries by namespace and name, each with the fields of RV(openfleet.clusters.cluster_registry#module:registry).
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
