#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Look at a cluster, whatever its provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It tells where a cluster stands, from its provider and not from its order, and how to reach it.
options:
  dns:
    description: Whether to tell the domain of the cluster's applications as RV(dns).
    type: bool
    default: false
  with_kubeconfig:
    description:
      - Whether to read the kubeconfig of the cluster's administrator into RV(cluster_kubeconfig).
      - The result of the task is then hidden, and is there only for the variable that registers it.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Nothing is changed.
  diff_mode:
    support: none
    description: There is nothing to show.
  action:
    support: full
    description: Runs in the process of the controller, without a connection to a host.
extends_documentation_fragment:
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster
  - module: openfleet.clusters.cluster_order_info
"""

EXAMPLES = r"""
- name: See how the cluster of an order is
  openfleet.clusters.cluster_info:
    cluster_order: "{{ cluster_order }}"
    provider: "{{ cluster_provider }}"
  register: found

- name: Say where it stands
  ansible.builtin.debug:
    msg: "{{ found.cluster.status }}: {{ found.cluster.status_details }}"
"""

RETURN = r"""
exists:
  description: Whether there is such a cluster.
  returned: success
  type: bool
  sample: true
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
dns:
  description: The domain that the cluster's applications are below.
  returned: if O(dns=true)
  type: str
  sample: apps.demo.example.com
cluster_kubeconfig:
  description: The content of the kubeconfig. It is not shown, only registered.
  returned: if O(with_kubeconfig=true)
  type: dict
kubeconfig_version:
  description: Changes when the kubeconfig does.
  returned: if O(with_kubeconfig=true)
  type: str
  sample: "4711"
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.openfleet.clusters.plugins.module_utils.arguments import CLUSTER, CLUSTER_RULES, KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    **CLUSTER,
    "dns": {"type": "bool", "default": False},
    "with_kubeconfig": {"type": "bool", "default": False},
}
RULES: dict[str, Any] = CLUSTER_RULES


def main() -> None:
    module = AnsibleModule(argument_spec=KUBERNETES | ORDERS | SPEC, supports_check_mode=True, **RULES)
    module.fail_json(
        msg="openfleet.clusters.cluster_info runs in Ansible's own process and not on a host:"
        " call it as a task of a playbook, or with `ansible -m`."
    )


if __name__ == "__main__":
    main()
