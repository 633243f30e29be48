#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_storage
short_description: Manage the storage classes of a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Applies storage classes to a cluster with any provider, marks the default class, and deletes classes that the module
    created and that are no longer listed.
  - Reports a class whose CSI driver the cluster does not have yet.
options:
  state:
    description:
      - V(present) applies it.
      - V(absent) removes what the module has created. It is removed when RV(part.ready) is true.
    type: str
    choices: [present, absent]
    default: present
  classes:
    description:
      - The storage classes by name, in the form of C(storage_classes) in the settings of the site. Each is a dictionary
        with the keys below.
      - C(backend) is V(local), for volumes on disks of the nodes, or V(remote), the default, for a storage system.
      - C(provisioner) is the name of the CSI driver. Required for V(remote).
      - C(parameters), C(reclaim_policy), C(volume_binding_mode), C(allow_volume_expansion) and C(mount_options) are
        those of a Kubernetes StorageClass. By default, V(local) waits for the first consumer of a volume.
      - Kubernetes allows no change of provisioner, parameters, reclaim policy and binding mode of a class.
    type: dict
    default: {}
  default:
    description: Name of the class for claims without a class.
    type: str
    default: ""
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster_resources
"""

EXAMPLES = r"""
- name: Apply a remote and a local storage class
  openfleet.clusters.cluster_storage:
    name: lab
    namespace: clusters
    provider: hypershift
    classes:
      fast:
        provisioner: csi.example.com
        parameters:
          pool: ssd
      scratch:
        backend: local
    default: fast
  register: storage

- name: Show whether the driver is installed
  ansible.builtin.debug:
    msg: "{{ storage.part.reason }}"

- name: Delete the storage classes
  openfleet.clusters.cluster_storage:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
"""

RETURN = r"""
part:
  description:
    - Whether the part is ready. A cluster that does not serve what the task needs yet is no failure. Run the task again
      later.
  returned: success
  type: dict
  contains:
    ready:
      description: Whether it is ready, or with O(state=absent) removed.
      type: bool
      returned: always
      sample: false
    reason:
      description: The reason in one word.
      type: str
      returned: always
      sample: DriverMissing
    message:
      description: What is missing.
      type: str
      returned: always
      sample: The cluster does not have the driver csi.example.com of the storage class fast
objects:
  description: The objects of the change.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
      returned: always
      sample: StorageClass
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: fast
    action:
      description: The action, V(created), V(changed), V(unchanged) or V(deleted). In check mode, the predicted action.
      type: str
      returned: always
      sample: created
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    CLUSTER,
    CLUSTER_RULES,
    KUBERNETES,
    LOCK,
    ORDERS,
    Spec,
)

SPEC: Spec = {
    **CLUSTER,
    **LOCK,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "classes": {"type": "dict", "default": {}},
    "default": {"type": "str", "default": ""},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
