#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vm_class_info
short_description: Get the node settings for classes of virtual machines
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Translates requested nodes into the settings of the provider C(hypershift) for nodes on KubeVirt, by the classes of
    a site.
  - Fails if a class does not exist or has a mistake, or if the nodes need more than the limits allow. So a task before
    M(openfleet.clusters.cluster) rejects an order before anything is created.
  - Needs no cluster and no credentials.
options:
  classes:
    description:
      - The classes of the site by name. Classes whose C(kind) is not V(vm) are ignored.
      - A class has C(cores), C(memory), and optionally C(root_volume_size) (V(32Gi)), C(storage_class), C(network) (a
        NetworkAttachmentDefinition as C(namespace/name), attached beside the network of pods) and C(max_nodes) of a
        cluster.
    type: dict
    required: true
  node_requests:
    description: The nodes of the cluster by resource class.
    type: list
    elements: dict
    default: []
    suboptions:
      resourceClass:
        description: Resource class of the machines.
        type: str
        required: true
      numberOfNodes:
        description: Number of nodes.
        type: int
        required: true
  limits:
    description: What the nodes of one cluster may need at most, C(nodes), C(cores) and C(memory).
    type: dict
    default: {}
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
seealso:
  - module: openfleet.clusters.cluster
requirements:
  - python >= 3.11
"""

EXAMPLES = r"""
- name: Check the requested nodes
  openfleet.clusters.vm_class_info:
    classes:
      vm-small:
        kind: vm
        cores: 4
        memory: 16Gi
        storage_class: fast
    node_requests:
      - resourceClass: vm-small
        numberOfNodes: 2
    limits:
      cores: 32
      memory: 128Gi
  register: machines

- name: Show the setting node_platforms for the module cluster
  ansible.builtin.debug:
    msg: "{{ machines.node_platforms }}"
"""

RETURN = r"""
node_platforms:
  description: The setting C(node_platforms) of the provider C(hypershift), by resource class.
  returned: success
  type: dict
  sample:
    vm-small:
      kubevirt:
        compute:
          cores: 4
          memory: 16Gi
        rootVolume:
          type: Persistent
          persistent:
            size: 32Gi
            storageClass: fast
needed:
  description: What the nodes need in all.
  returned: success
  type: dict
  contains:
    nodes:
      description: Number of nodes.
      type: int
      returned: always
      sample: 2
    cores:
      description: Number of cores.
      type: int
      returned: always
      sample: 8
    memory:
      description: Bytes of memory.
      type: int
      returned: always
      sample: 34359738368
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec

SPEC: Spec = {
    "classes": {"type": "dict", "required": True},
    "node_requests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "resourceClass": {"type": "str", "required": True},
            "numberOfNodes": {"type": "int", "required": True},
        },
    },
    "limits": {"type": "dict", "default": {}},
}
RULES: dict[str, Any] = {}

if __name__ == "__main__":
    main(SPEC, RULES)
