#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_registry
short_description: Register clusters, and find out how they are
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - A registry names clusters that are worked with directly, as disaster recovery does, each with its region and the C(Secret) that has
    its kubeconfig. It is a C(ClusterRegistry), or a C(ConfigMap) on a hub without that CRD.
  - The C(Secret)s are yours to make, in the registry's namespace, each with the kubeconfig below the key C(kubeconfig). This module
    reads them and never writes one.
  - With O(state=checked) all clusters are looked at, at the same time, and what is found is written into the registry's status. A
    cluster that refuses its credentials is never called unreachable.
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
    description: The form of the registry. A C(ConfigMap) is one if it has the label C(ramendr.openshift.io/cluster-registry=true).
    type: str
    choices: [ClusterRegistry, ConfigMap]
    default: ClusterRegistry
  state:
    description:
      - V(present) has the clusters of O(clusters) and O(dr_policy) in the registry, which is made if need be. Others in it stay.
      - V(absent) has none of O(clusters) in the registry. Without O(clusters), there is no registry; an empty list removes nothing.
      - V(checked) looks at all clusters of the registry and writes what it finds into the status. A cluster that is not well does not
        fail the task, see RV(unhealthy).
    type: str
    choices: [present, absent, checked]
    default: present
  clusters:
    description: The clusters. What is left out stays as it is in the registry.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the cluster.
        type: str
        required: true
      region:
        description: Where it is.
        type: str
      endpoint:
        description: Address of its API server, where it is to be reached by another than the one in its kubeconfig.
        type: str
      kubeconfig_secret:
        description: Name of the C(Secret) with its kubeconfig. By default C(<name>-kubeconfig).
        type: str
  dr_policy:
    description: With O(state=present), also register the clusters of this C(DRPolicy), with the regions of their C(DRCluster)s.
    type: str
  timeout:
    description: With O(state=checked), how many seconds a cluster may take for its answers, in all.
    type: int
    default: 10
notes:
  - A second O(state=checked) is unchanged unless something about a cluster is different. When a cluster was seen last is no change,
    and is written at most once a minute.
  - A kubeconfig from a C(Secret) must hold what it needs. One that names a command to run or files to read is refused, because those
    would be run and read on the controller.
  - Credentials that expire within 14 days are warned about.
seealso:
  - module: openfleet.clusters.cluster_registry_info
attributes:
  check_mode:
    support: full
    details: The hub judges what would be written, and keeps nothing. With O(state=checked) the clusters are looked at.
  diff_mode:
    support: full
    details: Shows the clusters, or what is found of them, before and after.
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

- name: Find out how they are
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    state: checked
    timeout: 3
  register: registry

- name: Name those that are not well
  ansible.builtin.debug:
    msg: "{{ registry.registry.clusters | rejectattr('healthy') | items2dict(key_name='name', value_name='reason') }}"

- name: Take one out
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    state: absent
    clusters:
      - name: west

- name: Remove the registry, and leave the secrets
  openfleet.clusters.cluster_registry:
    name: peers
    namespace: dr
    state: absent
"""

RETURN = r"""
registry:
  description: The registry as it is now, or in check mode would be.
  returned: success, unless there is none
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
      description: Its form.
      type: str
      returned: always
      sample: ClusterRegistry
    clusters:
      description: Its clusters, and how each was found last.
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
          description: Where it is. Empty if that is not known.
          type: str
          returned: always
          sample: eu-east
        endpoint:
          description: Address of its API server. Empty if it is the one in its kubeconfig.
          type: str
          returned: always
          sample: https://api.east.example.com:6443
        kubeconfig_secret:
          description: Name of the C(Secret) with its kubeconfig.
          type: str
          returned: always
          sample: east-kubeconfig
        healthy:
          description: Whether it answered and accepted its credentials.
          type: bool
          returned: always, V(null) if it was never looked at
          sample: true
        reachable:
          description: Whether anything answered at its address.
          type: bool
          returned: always, V(null) if it could not be asked
          sample: true
        authenticated:
          description: Whether it accepted its credentials.
          type: bool
          returned: always, V(null) if it did not come to that
          sample: true
        version:
          description: Version of its API server.
          type: str
          returned: always
          sample: v1.36.3
        last_seen:
          description: When it answered last, up to a minute behind.
          type: str
          returned: always, V(null) if it never did
          sample: "2025-01-01T12:00:00Z"
        credentials_expire:
          description: When its client certificate or token expires.
          type: str
          returned: always, V(null) if neither says so
          sample: "2026-01-01T12:00:00Z"
        reason:
          description: The finding in one word, see the documentation of the C(ClusterRegistry).
          type: str
          returned: always, empty if it was never looked at
          sample: Healthy
        message:
          description: What was found and what to do about it. Empty if all is well.
          type: str
          returned: always
          sample: ""
unhealthy:
  description: Names of the clusters that are not well.
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
