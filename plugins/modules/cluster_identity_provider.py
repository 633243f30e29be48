#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_identity_provider
short_description: Let people log in to a cluster with an identity provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It adds an identity provider to those that a cluster has, changes one of the same name, or takes one away. Others stay as they are.
options:
  state:
    description:
      - V(present) lets people log in with it.
      - V(absent) no longer does.
    type: str
    choices: [present, absent]
    default: present
  identity_provider:
    description: The name of the identity provider, which the log-in page shows.
    type: str
    required: true
  type:
    description: Its kind, V(OpenID), V(HTPasswd), V(GitHub), V(GitLab), V(Google) or V(LDAP). Required if O(state=present).
    type: str
  settings:
    description: What OpenShift's OAuth resource has for that kind, C(issuer) and C(clientID) for example.
    type: dict
    default: {}
  secrets:
    description: The secret of that kind by its key, C(clientSecret), C(htpasswd) or C(bindPassword).
    type: dict
    default: {}
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster
"""

EXAMPLES = r"""
- name: Let people log in with an OpenID provider
  openfleet.clusters.cluster_identity_provider:
    name: lab
    namespace: clusters
    provider: hypershift
    identity_provider: company
    type: OpenID
    settings:
      issuer: https://sso.example.com
      clientID: lab
      claims:
        preferredUsername: [preferred_username]
    secrets:
      clientSecret: "{{ lookup('ansible.builtin.env', 'CLIENT_SECRET') }}"

- name: Do so no longer
  openfleet.clusters.cluster_identity_provider:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
    identity_provider: company
"""

RETURN = r"""
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
    "identity_provider": {"type": "str", "required": True},
    "type": {"type": "str"},
    "settings": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
}
RULES: dict[str, Any] = {**CLUSTER_RULES, "required_if": [("state", "present", ("type",))]}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
