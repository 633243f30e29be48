#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_node_set
short_description: Have a number of nodes of one class in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It changes the number of nodes of a class, adds a class, or takes one away.
  - For clusters without an order, and for repairs. What an order asks for comes back with the next run of C(create_cluster).
options:
  resource_class:
    description: The kind of machine.
    type: str
    required: true
  nodes:
    description: How many of them there are to be; V(0) takes the whole class away.
    type: int
    required: true
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
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster
"""

EXAMPLES = r"""
- name: Have three nodes of a class
  openfleet.clusters.cluster_node_set:
    name: lab
    namespace: clusters
    provider: hypershift
    resource_class: fc430
    nodes: 3
"""

RETURN = r"""
cluster:
  description: The cluster as its provider sees it.
  returned: success
  type: dict
  contains:
    name:
      description: Name of the cluster.
      type: str
      returned: always
      sample: demo
    namespace:
      description: The namespace on the hub that has its objects and secrets.
      type: str
      returned: always
      sample: orders-demo
    provider:
      description: Who made it and serves it.
      type: str
      returned: always
      sample: hypershift
    internal_id:
      description: What the provider finds it by.
      type: str
      returned: always
      sample: orders-demo/demo
    external_id:
      description: What the cluster calls itself.
      type: str
      returned: always
      sample: 0d1c3f8e-6f0e-4b7e-9b6c-7a4f0a2f8f11
    status:
      description:
        - Where it stands, V(absent), V(cluster_accepted), V(cluster_provisioning), V(cluster_provisioned), V(ready), V(failed),
          V(deprovisioning) or V(cleanup).
      type: str
      returned: always
      sample: cluster_provisioning
    status_details:
      description: Why it stands there, in words.
      type: str
      returned: always
      sample: "Available is False (WaitingForAvailable)"
    retryable:
      description: Whether trying again may help, where it has failed.
      type: bool
      returned: always
      sample: false
    cloud_provider:
      description: The cloud it is in, where the provider has several.
      type: str
      returned: always
      sample: aws
    region:
      description: The region it is in.
      type: str
      returned: always
      sample: us-east-1
    multi_az:
      description: Whether it is spread over several zones of its region.
      type: bool
      returned: always
      sample: false
    version:
      description: The release that it is to have.
      type: str
      returned: always
      sample: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
    api_url:
      description: Address of its API server.
      type: str
      returned: always
      sample: https://api.demo.example.com:6443
    console_url:
      description: Address of its web console.
      type: str
      returned: always
      sample: https://console-openshift-console.apps.demo.example.com
    installed:
      description: Whether it was installed completely once.
      type: bool
      returned: always
      sample: true
    updating:
      description: Whether a change is being rolled out.
      type: bool
      returned: always
      sample: false
    node_sets:
      description: Its nodes by class.
      type: list
      elements: dict
      returned: always
      sample:
        - name: demo-fc430
          resource_class: fc430
          asked: 2
          ready: 2
          outdated: false
          updating: false
          going: false
          given: false
    conditions:
      description: What it says of itself, by the name of the condition.
      type: dict
      returned: always
      sample:
        Available:
          status: "True"
          reason: AsExpected
          message: The hosted control plane is available
    additional_info:
      description: What else the provider keeps of it.
      type: dict
      returned: always
      sample: {}
objects:
  description: The objects that the change is about.
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
from ansible_collections.openfleet.clusters.plugins.module_utils.arguments import CLUSTER, CLUSTER_RULES, KUBERNETES, LOCK, ORDERS, Spec

SPEC: Spec = {
    **CLUSTER,
    **LOCK,
    "resource_class": {"type": "str", "required": True},
    "nodes": {"type": "int", "required": True},
}
RULES: dict[str, Any] = CLUSTER_RULES


def main() -> None:
    module = AnsibleModule(argument_spec=KUBERNETES | ORDERS | SPEC, supports_check_mode=True, **RULES)
    module.fail_json(
        msg="openfleet.clusters.cluster_node_set runs in Ansible's own process and not on a host:"
        " call it as a task of a playbook, or with `ansible -m`."
    )


if __name__ == "__main__":
    main()
