#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_cluster_info
short_description: Read clusters of a fleet
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns the clusters with their state, from the home cluster of a fleet.
options:
  name:
    description: Name of the cluster, with O(namespace). The task does not fail if it does not exist.
    type: str
  namespace:
    description: Namespace of the clusters. Defaults to all namespaces.
    type: str
seealso:
  - module: openfleet.clusters.fleet_cluster
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Read the clusters of a tenant
  openfleet.clusters.fleet_cluster_info:
    namespace: team
  register: of_team

- name: Show the state of each
  ansible.builtin.debug:
    msg: "{{ dict(of_team.fleet_clusters | map(attribute='name') | zip(of_team.fleet_clusters | map(attribute='status'))) }}"
"""

RETURN = r"""
fleet_clusters:
  description:
    - The clusters, sorted, each with the fields of
      RV(openfleet.clusters.fleet_cluster#module:fleet_cluster).
  returned: success
  type: list
  elements: dict
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {"name": {"type": "str"}, "namespace": {"type": "str"}}
RULES: dict[str, Any] = {"required_by": {"name": ["namespace"]}}

if __name__ == "__main__":
    main(KUBERNETES | SPEC, RULES)
