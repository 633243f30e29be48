#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hosted_cluster
short_description: Make or remove the HyperShift cluster of an order
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - For tasks of cluster templates. It applies the secrets, the HostedCluster and a NodePool for each resource class in one task,
    and removes NodePools of classes that are no longer asked for.
  - Only what differs is written, and every write carries the token of O(lock). Where a later run has written, this one is refused.
  - It starts the work and does not wait for it.
options:
  state:
    description:
      - V(present) makes the cluster what is described here.
      - V(absent) removes all of it. The secrets go in a later run, when the HostedCluster is gone.
    type: str
    choices: [present, absent]
    default: present
  cluster_order:
    description: The ClusterOrder, as a template is given it.
    type: dict
    required: true
  namespace:
    description: The working namespace of the order, as a template is given it.
    type: str
    required: true
  lock:
    description: The lock that the run holds, as a template is given it, or RV(openfleet.clusters.cluster_lock#module:lock).
    type: dict
    required: true
    suboptions:
      namespace:
        description: Namespace of the order.
        type: str
        required: true
      order:
        description: Name of the order.
        type: str
        required: true
      holder:
        description: Who holds the lock.
        type: str
        required: true
      token:
        description: The number that goes with every write.
        type: int
        required: true
      duration:
        description: For how many seconds the lock lasts without being renewed.
        type: int
        required: true
      acquired:
        description: When the lock was taken.
        type: str
        required: true
      version:
        description: The version of the Lease as it was then.
        type: str
        required: true
  node_requests:
    description: The nodes of the cluster. Required if O(state=present).
    type: list
    elements: dict
    default: []
    suboptions:
      resourceClass:
        description: The kind of machine.
        type: str
        required: true
      numberOfNodes:
        description: How many of them.
        type: int
        required: true
  release_image:
    description: The OpenShift release. Another one than before updates the cluster. Required if O(state=present).
    type: str
  pull_secret:
    description: The pull secret for the release's images, a JSON text as it is downloaded. Required if O(state=present).
    type: str
  ssh_public_key:
    description: An SSH key that may log in to the nodes.
    type: str
  base_domain:
    description: The DNS domain that the cluster's own name comes below.
    type: str
  pod_network_cidr:
    description: The addresses of the cluster's pods.
    type: str
    default: 10.132.0.0/14
  service_network_cidr:
    description: The addresses of the cluster's services.
    type: str
    default: 172.31.0.0/16
  control_plane_availability:
    description: Whether the control plane runs once, or three times on different machines of the hub.
    type: str
    choices: [SingleReplica, HighlyAvailable]
    default: SingleReplica
  platform:
    description: The C(spec.platform) of the HostedCluster.
    type: dict
    default:
      type: "None"
  node_platform:
    description: What the C(spec.platform) of each NodePool has beside the type of O(platform).
    type: dict
    default: {}
  configuration:
    description: The C(spec.configuration) of the HostedCluster, identity providers for example.
    type: dict
    default: {}
  extra_secrets:
    description: Further secrets that the cluster needs, by name, each a dictionary of texts.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Reads what is there, and asks the API server what it would make of the rest.
  diff_mode:
    support: full
    description: Shows each object. Of secrets only the keys are shown, and which of them change.
  action:
    support: full
    description: Runs in the process of the controller, without a connection to a host.
extends_documentation_fragment:
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Make the cluster of an order, as the install task of a template
  openfleet.clusters.hosted_cluster:
    cluster_order: "{{ cluster_order }}"
    namespace: "{{ cluster_working_namespace }}"
    lock: "{{ cluster_lock }}"
    node_requests: "{{ node_requests }}"
    release_image: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
    pull_secret: "{{ template_parameters.pull_secret }}"
    platform:
      type: Agent
      agent:
        agentNamespace: "{{ cluster_working_namespace }}"
    node_platform:
      agent: {}

- name: Remove it, as the delete task of a template
  openfleet.clusters.hosted_cluster:
    state: absent
    cluster_order: "{{ cluster_order }}"
    namespace: "{{ cluster_working_namespace }}"
    lock: "{{ cluster_lock }}"
"""

RETURN = r"""
objects:
  description: The objects of the cluster.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
      returned: always
      sample: NodePool
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: demo-fc430
    action:
      description: What was done to it, V(created), V(changed), V(unchanged) or V(deleted), or would be.
      type: str
      returned: always
      sample: created
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.openfleet.clusters.plugins.module_utils.arguments import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "cluster_order": {"type": "dict", "required": True},
    "namespace": {"type": "str", "required": True},
    "lock": {
        "type": "dict",
        "required": True,
        "options": {
            "namespace": {"type": "str", "required": True},
            "order": {"type": "str", "required": True},
            "holder": {"type": "str", "required": True},
            "token": {"type": "int", "required": True, "no_log": False},
            "duration": {"type": "int", "required": True},
            "acquired": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
        },
    },
    "node_requests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "resourceClass": {"type": "str", "required": True},
            "numberOfNodes": {"type": "int", "required": True},
        },
    },
    "release_image": {"type": "str"},
    "pull_secret": {"type": "str", "no_log": True},
    "ssh_public_key": {"type": "str", "no_log": False},
    "base_domain": {"type": "str"},
    "pod_network_cidr": {"type": "str", "default": "10.132.0.0/14"},
    "service_network_cidr": {"type": "str", "default": "172.31.0.0/16"},
    "control_plane_availability": {"type": "str", "choices": ["SingleReplica", "HighlyAvailable"], "default": "SingleReplica"},
    "platform": {"type": "dict", "default": {"type": "None"}},
    "node_platform": {"type": "dict", "default": {}},
    "configuration": {"type": "dict", "default": {}},
    "extra_secrets": {"type": "dict", "default": {}, "no_log": True},
}
RULES: dict[str, Any] = {"required_if": [("state", "present", ("release_image", "pull_secret", "node_requests"))]}


def main() -> None:
    module = AnsibleModule(argument_spec=KUBERNETES | ORDERS | SPEC, supports_check_mode=True, **RULES)
    module.fail_json(
        msg="openfleet.clusters.hosted_cluster runs in Ansible's own process and not on a host:"
        " call it as a task of a playbook, or with `ansible -m`."
    )


if __name__ == "__main__":
    main()
