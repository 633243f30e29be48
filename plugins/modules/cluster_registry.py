#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_registry
short_description: Register clusters and check their health
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - A registry has clusters for direct access, for example by disaster recovery, each with its region and the C(Secret)
    with its kubeconfig. It is a C(ClusterRegistry), or a C(ConfigMap) on a hub without that CRD.
  - Create the C(Secret)s yourself, in the namespace of the registry, each with the kubeconfig under the key
    C(kubeconfig). This module only reads them.
  - With O(state=checked) the module checks all clusters concurrently and writes their health into the status of the
    registry. A cluster that refuses its credentials is never reported as unreachable.
options:
  name:
    description: Name of the registry.
    type: str
    required: true
  namespace:
    description: Namespace of the registry.
    type: str
    required: true
  kind:
    description: The form of the registry. A C(ConfigMap) needs the label C(ramendr.openshift.io/cluster-registry=true).
    type: str
    choices: [ClusterRegistry, ConfigMap]
    default: ClusterRegistry
  state:
    description:
      - V(present) adds or updates the clusters of O(clusters) and O(dr_policy). It creates the registry if needed.
        Other clusters stay.
      - V(absent) removes O(clusters) from the registry. Without O(clusters) it deletes the registry; an empty list
        removes nothing.
      - V(checked) checks all clusters of the registry and writes their health into the status. An unhealthy cluster
        does not fail the task, see RV(unhealthy).
    type: str
    choices: [present, absent, checked]
    default: present
  clusters:
    description: The clusters. Fields that you omit stay unchanged in the registry.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the cluster.
        type: str
        required: true
      region:
        description: Region of the cluster.
        type: str
      endpoint:
        description: Address of the API server, if it is not the one in the kubeconfig.
        type: str
      kubeconfig_secret:
        description: Name of the C(Secret) with the kubeconfig. Defaults to C(<name>-kubeconfig) for a new cluster.
        type: str
  dr_policy:
    description:
      - With O(state=present), also registers the clusters of this C(DRPolicy), with the regions of their C(DRCluster)s.
    type: str
  timeout:
    description: With O(state=checked), the time for the check of one cluster, in seconds.
    type: int
    default: 10
notes:
  - A repeated O(state=checked) is unchanged unless the health of a cluster changed. A new C(lastSeen) is no change, and
    is written at most once a minute.
  - A kubeconfig in a C(Secret) must be self-contained. The module refuses one that runs a command or names files,
    because these would be run and read on the controller.
  - The module warns about credentials that expire within 14 days.
seealso:
  - module: openfleet.clusters.cluster_registry_info
attributes:
  check_mode:
    support: full
    details:
      - The API server validates each change with a dry run. O(state=checked) checks the clusters and writes no status.
  diff_mode:
    support: full
    details: Shows the clusters, or with O(state=checked) the status, before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Register two clusters
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    clusters:
      - name: east
        region: eu-east
      - name: west
        region: eu-west
        kubeconfig_secret: west-admin
        endpoint: https://192.0.2.10:6443

- name: Register the clusters of a DRPolicy
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    dr_policy: metro

- name: Check their health
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    state: checked
    timeout: 3
  register: registry

- name: Show the unhealthy clusters
  ansible.builtin.debug:
    msg: "{{ registry.registry.clusters | rejectattr('healthy') | items2dict(key_name='name', value_name='reason') }}"

- name: Remove one cluster
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    state: absent
    clusters:
      - name: west

- name: Delete the registry and keep the Secrets
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    state: absent
"""

RETURN = r"""
registry:
  description: The registry after the task; in check mode, as it would be.
  returned: success, unless the registry does not exist
  type: dict
  contains:
    name:
      description: Name of the registry.
      type: str
      returned: always
      sample: peers
    namespace:
      description: Namespace of the registry.
      type: str
      returned: always
      sample: dr
    kind:
      description: Form of the registry.
      type: str
      returned: always
      sample: ClusterRegistry
    clusters:
      description: The clusters and their last known health.
      type: list
      elements: dict
      returned: always
      contains:
        name:
          description: Name of the cluster.
          type: str
          returned: always
          sample: east
        region:
          description: Region of the cluster. Empty if it is not set.
          type: str
          returned: always
          sample: eu-east
        endpoint:
          description: Address of the API server. Empty if it is the one in the kubeconfig.
          type: str
          returned: always
          sample: https://api.east.example.com:6443
        kubeconfig_secret:
          description: Name of the C(Secret) with the kubeconfig.
          type: str
          returned: always
          sample: east-kubeconfig
        healthy:
          description: Whether the cluster answered and accepted the credentials.
          type: bool
          returned: always, V(null) before the first check
          sample: true
        reachable:
          description: Whether a server answered at the address.
          type: bool
          returned: always, V(null) if unknown
          sample: true
        authenticated:
          description: Whether the cluster accepted the credentials.
          type: bool
          returned: always, V(null) if unknown
          sample: true
        version:
          description: Version of the API server.
          type: str
          returned: always
          sample: v1.36.3
        last_seen:
          description: When the cluster last answered, up to a minute behind.
          type: str
          returned: always, V(null) if it never answered
          sample: "2025-01-01T12:00:00Z"
        credentials_expire:
          description: When the client certificate or token expires.
          type: str
          returned: always, V(null) if unknown
          sample: "2026-01-01T12:00:00Z"
        reason:
          description: The health in one word, see the documentation of the C(ClusterRegistry).
          type: str
          returned: always, empty before the first check
          sample: Healthy
        message:
          description: The cause and what to do. Empty for a healthy cluster.
          type: str
          returned: always
          sample: ""
unhealthy:
  description: Names of the unhealthy clusters.
  returned: O(state=checked)
  type: list
  elements: str
  sample: [west]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "kind": {"type": "str", "choices": ["ClusterRegistry", "ConfigMap"], "default": "ClusterRegistry"},
    "state": {"type": "str", "choices": ["present", "absent", "checked"], "default": "present"},
    "clusters": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "region": {"type": "str"},
            "endpoint": {"type": "str"},
            "kubeconfig_secret": {"type": "str", "no_log": False},
        },
    },
    "dr_policy": {"type": "str"},
    "timeout": {"type": "int", "default": 10},
}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
