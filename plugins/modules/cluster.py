#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster
short_description: Create, update or delete a cluster with any provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates all objects of a cluster in one task, and deletes those that are no longer requested.
  - Writes only differences, under the lock of the cluster. A write is refused if a later run has written to the object.
  - Starts the work and does not wait for it, unless O(wait) is set.
  - For the tasks of cluster templates, and for clusters without an order.
options:
  state:
    description:
      - V(present) creates or updates the cluster.
      - V(absent) deletes the cluster. A deletion can need several runs, of which each does the steps that are possible.
        The cluster is deleted when RV(deleted) is true.
    type: str
    choices: [present, absent]
    default: present
  version:
    description: OpenShift release image or Kubernetes version. A change updates the cluster.
    type: str
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
  cloud_provider:
    description: Cloud of the cluster, for a provider with several clouds.
    type: str
  region:
    description: Region of the cluster, for a provider with several regions.
    type: str
  multi_az:
    description: Whether to spread the cluster over several zones of the region.
    type: bool
    default: false
  settings:
    description: Settings of the provider. The documentation of the provider lists them.
    type: dict
    default: {}
  secrets:
    description: Secrets of the provider, for example a pull secret or a token. The documentation of the provider lists
      them.
    type: dict
    default: {}
  wait:
    description: Whether to wait until the cluster is ready or deleted. Do not use it in jobs, which should end early.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait at most.
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
- name: Create the cluster of an order, in the install tasks of a template
  openfleet.clusters.cluster:
    version: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
    node_requests: "{{ node_requests }}"
    settings:
      platform:
        type: Agent
        agent:
          agentNamespace: "{{ cluster_working_namespace }}"
    secrets:
      pull_secret: "{{ template_parameters.pull_secret }}"
      ssh_public_key: "{{ template_parameters.ssh_public_key | default(none) }}"

- name: Delete the cluster of an order, in the delete tasks of a template
  openfleet.clusters.cluster:
    state: absent

- name: Create a cluster without an order
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
  no_log: true  # the task contains the pull secret
"""

RETURN = r"""
cluster:
  description: The cluster as its provider observes it.
  returned: if O(state=present)
  type: dict
  contains:
    name:
      description: Name of the cluster.
      type: str
      returned: always
      sample: demo
    namespace:
      description: Namespace of the cluster's objects and Secrets on the hub.
      type: str
      returned: always
      sample: orders-demo-bt7oormzw2gp
    provider:
      description: Provider of the cluster.
      type: str
      returned: always
      sample: hypershift
    internal_id:
      description: ID of the cluster with its provider.
      type: str
      returned: always
      sample: orders-demo-bt7oormzw2gp/demo
    external_id:
      description: ID that the cluster has itself.
      type: str
      returned: always
      sample: 0d1c3f8e-6f0e-4b7e-9b6c-7a4f0a2f8f11
    status:
      description:
        - Status of the cluster, V(absent), V(cluster_accepted), V(cluster_provisioning), V(cluster_provisioned),
          V(ready), V(failed), V(deprovisioning) or V(cleanup).
      type: str
      returned: always
      sample: cluster_provisioning
    status_details:
      description: Reason of the status.
      type: str
      returned: always
      sample: "Available is False (WaitingForAvailable)"
    retryable:
      description: Whether a retry can succeed, for a cluster that has failed.
      type: bool
      returned: always
      sample: false
    cloud_provider:
      description: Cloud of the cluster, for a provider with several clouds.
      type: str
      returned: always
      sample: aws
    region:
      description: Region of the cluster.
      type: str
      returned: always
      sample: us-east-1
    multi_az:
      description: Whether the cluster is spread over several zones of the region.
      type: bool
      returned: always
      sample: false
    version:
      description: Requested release.
      type: str
      returned: always
      sample: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
    running_version:
      description: Version of the release that is installed completely. Empty if the provider does not know it.
      type: str
      returned: always
      sample: 4.17.0
    desired_version:
      description: Version of the requested release, if RV(cluster.version) is not a version.
      type: str
      returned: always
      sample: 4.17.0
    available_updates:
      description: Versions of the updates that the provider recommends.
      type: list
      elements: str
      returned: always
      sample: ["4.17.1"]
    api_url:
      description: URL of the API server.
      type: str
      returned: always
      sample: https://api.demo.example.com:6443
    console_url:
      description: URL of the web console, as the cluster reports it. Empty if it is not known.
      type: str
      returned: always
      sample: https://console-openshift-console.apps.demo.example.com
    installed:
      description: Whether an installation of the cluster has completed.
      type: bool
      returned: always
      sample: true
    updating:
      description: Whether an update is in progress.
      type: bool
      returned: always
      sample: false
    change_refused:
      description: Whether the cluster failed only to change, and runs on as before.
      type: bool
      returned: always
      sample: false
    node_sets:
      description: Nodes by resource class.
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
          counted: true
    conditions:
      description: Conditions of the cluster by type.
      type: dict
      returned: always
      sample:
        Available:
          status: "True"
          reason: AsExpected
          message: The hosted control plane is available
    additional_info:
      description: Further data of the provider.
      type: dict
      returned: always
      sample: {}
deleted:
  description: Whether the cluster and all its objects are deleted.
  returned: if O(state=absent)
  type: bool
  sample: false
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
      sample: NodePool
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: demo-fc430
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
