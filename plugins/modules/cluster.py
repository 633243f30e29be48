#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster
short_description: Make, change or remove a cluster with any provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - For tasks of cluster templates, and for clusters without an order. It makes all that the cluster consists of in one task, and takes away
    what is no longer asked for.
  - Only what differs is written, under the lock of the cluster. Where a later run has written, this one is refused.
  - It starts the work and does not wait for it, unless O(wait) is set.
options:
  state:
    description:
      - V(present) makes the cluster what is described here.
      - V(absent) removes all of it. That takes several steps, of which each run does those that can be done; RV(gone) tells when
        nothing is left.
    type: str
    choices: [present, absent]
    default: present
  version:
    description: What the cluster is to run, an OpenShift release image or a Kubernetes version. Another one than before updates it.
    type: str
  node_requests:
    description: The nodes of the cluster, a number of each class.
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
  cloud_provider:
    description: The cloud to make the cluster in, where the provider has several.
    type: str
  region:
    description: The region to make the cluster in, where the provider has several.
    type: str
  multi_az:
    description: Whether to spread the cluster over several zones of its region.
    type: bool
    default: false
  settings:
    description: What else the provider offers. The documentation of the collection has a table for each provider.
    type: dict
    default: {}
  secrets:
    description: What the provider needs and nobody may see, a pull secret or a token. The same tables have them.
    type: dict
    default: {}
  wait:
    description: Whether to wait until the cluster is ready, or gone. For people at a terminal, since a job that waits holds its place.
    type: bool
    default: false
  wait_timeout:
    description: For how many seconds to wait at most.
    type: int
    default: 1800
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster_info
  - module: openfleet.clusters.cluster_node_set
  - module: openfleet.clusters.cluster_resources
"""

EXAMPLES = r"""
- name: Make the cluster of an order, as the install task of a template
  openfleet.clusters.cluster:
    cluster_order: "{{ cluster_order }}"
    provider: "{{ cluster_provider }}"
    lock: "{{ cluster_lock }}"
    version: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
    node_requests: "{{ node_requests }}"
    settings:
      platform:
        type: Agent
        agent:
          agentNamespace: "{{ cluster_working_namespace }}"
    secrets:
      pull_secret: "{{ template_parameters.pull_secret }}"

- name: Remove it, as the delete task of a template
  openfleet.clusters.cluster:
    state: absent
    cluster_order: "{{ cluster_order }}"
    provider: "{{ cluster_provider }}"
    lock: "{{ cluster_lock }}"

- name: Make a cluster that nobody has ordered
  openfleet.clusters.cluster:
    name: lab
    namespace: clusters
    provider: hypershift
    version: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
    node_requests:
      - resourceClass: fc430
        numberOfNodes: 2
    secrets:
      pull_secret: '{"auths": {}}'
  no_log: true  # the pull secret is written in the task itself
"""

RETURN = r"""
cluster:
  description: The cluster as its provider sees it.
  returned: if O(state=present)
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
          requested: 2
          ready: 2
          outdated: false
          updating: false
          deleting: false
          preexisting: false
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
gone:
  description: Whether nothing is left.
  returned: if O(state=absent)
  type: bool
  sample: false
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
    "version": {"type": "str"},
    "node_requests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "resourceClass": {"type": "str", "required": True},
            "numberOfNodes": {"type": "int", "required": True},
        },
    },
    "cloud_provider": {"type": "str"},
    "region": {"type": "str"},
    "multi_az": {"type": "bool", "default": False},
    "settings": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 1800},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
