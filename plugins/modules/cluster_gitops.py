#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_gitops
short_description: Manage Flux in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Installs Flux in a cluster from pinned manifests, lets it follow a git repository and install the profiles of the
    order, and reports what Flux itself reports.
  - Applies what it can now and waits for nothing. Run the task again later to continue. Other manifests upgrade Flux.
options:
  state:
    description:
      - V(present) applies it.
      - V(absent) removes what Flux has applied, then Flux. It is removed when RV(part.ready) is true.
    type: str
    choices: [present, absent]
    default: present
  mode:
    description:
      - V(in_cluster) installs Flux in the cluster, which then works without the hub.
      - V(hub) uses the Flux that the site has installed on the hub. Its objects are in the working namespace of the
        order, and reach the cluster by its kubeconfig. It is for clusters without an outbound network.
      - To change the mode of a cluster, remove it first with O(state=absent) and the old mode.
    type: str
    choices: [in_cluster, hub]
    default: in_cluster
  manifests:
    description: The install manifests of Flux. Required with O(mode=in_cluster).
    type: dict
    suboptions:
      path:
        description: The file with the manifests, where Ansible runs.
        type: path
      url:
        description: The address of the manifests, instead of O(manifests.path).
        type: str
      sha256:
        description: The SHA-256 digest of the manifests. Manifests with another digest are refused.
        type: str
        required: true
      version:
        description: The version, for people.
        type: str
  source:
    description: The git repository that Flux follows.
    type: dict
    suboptions:
      url:
        description: The http, https or ssh address of the repository, without credentials.
        type: str
        required: true
      ref:
        description: What to follow of it, one of the three. The default is the branch C(main).
        type: dict
        suboptions:
          branch:
            description: A branch.
            type: str
          tag:
            description: A tag.
            type: str
          commit:
            description: A commit.
            type: str
      path:
        description: The folder in the repository to apply.
        type: str
        default: ./
      secretRef:
        description:
          - A Secret with the credentials, in the namespace of the order, or of the cluster if it has no order. It has
            C(username) and C(password), or C(bearerToken), or for ssh C(identity) and C(known_hosts); C(ca.crt) is
            optional.
          - It is copied to where Flux runs. Use another one for each cluster.
        type: dict
        suboptions:
          name:
            description: Name of the Secret.
            type: str
            required: true
  notifications:
    description:
      - Where Flux reports changes to. A report only asks the engine to observe the order, which it also does now and
        then without one.
      - Each cluster signs with a key of its own. Ignored for a cluster without an order.
    type: dict
    suboptions:
      address:
        description: The address of the webhook server of the engine, as clusters reach it.
        type: str
        required: true
      ca:
        description: The certificate authority of the address, in PEM.
        type: str
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
- name: Install Flux and follow a repository
  openfleet.clusters.cluster_gitops:
    name: lab
    namespace: clusters
    provider: hypershift
    manifests:
      path: "{{ flux_manifests }}"
      sha256: "{{ flux_sha256 }}"
      version: v2.9.5
    source:
      url: https://git.example.com/tenant-a/lab.git
      ref:
        branch: main
      path: ./clusters/lab
  register: gitops

- name: Show what Flux reports of the repository
  ansible.builtin.debug:
    msg: "{{ gitops.conditions.GitOpsSourceReady.message }}"

- name: Remove Flux and what it has applied
  openfleet.clusters.cluster_gitops:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
"""

RETURN = r"""
part:
  description:
    - Whether everything is applied. A cluster that does not serve what the task needs yet is no failure. Run the task
      again later.
  returned: success
  type: dict
  contains:
    ready:
      description: Whether it is applied, or with O(state=absent) removed. RV(conditions) say whether it works.
      type: bool
      returned: always
      sample: true
    reason:
      description: The reason in one word.
      type: str
      returned: always
      sample: Applied
    message:
      description: What is missing.
      type: str
      returned: always
      sample: Flux v2.9.5
conditions:
  description:
    - What Flux reports, as the conditions C(GitOpsInstalled), C(GitOpsSourceReady), C(GitOpsSynced) and
      C(ProfilesReady) of the order, each if it is used. With O(mode=hub) there is no C(GitOpsInstalled).
  returned: if O(state=present)
  type: dict
  sample:
    GitOpsInstalled:
      status: "True"
      reason: ControllersAvailable
      message: kustomize-controller, source-controller
    GitOpsSourceReady:
      status: "False"
      reason: GitOperationFailed
      message: "GitRepository flux-system: failed to checkout and determine revision: authentication required"
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
      sample: GitRepository
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: flux-system
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
    "mode": {"type": "str", "choices": ["in_cluster", "hub"], "default": "in_cluster"},
    "manifests": {
        "type": "dict",
        "options": {
            "path": {"type": "path"},
            "url": {"type": "str"},
            "sha256": {"type": "str", "required": True},
            "version": {"type": "str"},
        },
    },
    "source": {
        "type": "dict",
        "options": {
            "url": {"type": "str", "required": True},
            "ref": {"type": "dict", "options": {name: {"type": "str"} for name in ("branch", "tag", "commit")}},
            "path": {"type": "str", "default": "./"},
            "secretRef": {"type": "dict", "no_log": False, "options": {"name": {"type": "str", "required": True}}},
        },
    },
    "notifications": {
        "type": "dict",
        "options": {"address": {"type": "str", "required": True}, "ca": {"type": "str"}},
    },
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
