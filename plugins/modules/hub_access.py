#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hub_access
short_description: Create the account of a hub's agent on the home cluster of a fleet
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates the namespace of a hub on the home cluster, with the account of its agent and the permissions of the agent,
    of the home engine and of the REST API in it. What exists stays as it is.
  - Issues a credential of that account, if asked. It reaches the namespace of the hub only.
options:
  name:
    description: Name of the hub.
    type: str
    required: true
  issue:
    description: Whether to issue a kubeconfig with a new token.
    type: bool
    default: false
  expiration_seconds:
    description: For how many seconds the token is valid. The API server may limit it.
    type: int
    default: 31536000
  server:
    description: Address at which the hub reaches the home cluster. By default, that of this connection.
    type: str
seealso:
  - module: openfleet.clusters.hub_preparation
attributes:
  check_mode:
    support: full
    details: No token is issued in check mode.
  diff_mode:
    support: none
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Create the account of the agent
  openfleet.clusters.hub_access:
    name: east

- name: Issue its credential
  openfleet.clusters.hub_access:
    name: east
    issue: true
    server: https://home.example.com:6443
  register: access
  no_log: true
"""

RETURN = r"""
namespace:
  description: The namespace of the hub on the home cluster.
  returned: success
  type: str
  sample: hub-east
created:
  description: The objects that were created; in check mode, would be.
  returned: success
  type: list
  elements: str
  sample: ["Namespace hub-east"]
kubeconfig:
  description: The kubeconfig of the agent. It is a secret.
  returned: O(issue=true) and not in check mode
  type: dict
expires:
  description: When its token expires.
  returned: O(issue=true) and not in check mode
  type: str
  sample: "2027-01-01T00:00:00Z"
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "name": {"type": "str", "required": True},
    "issue": {"type": "bool", "default": False},
    "expiration_seconds": {"type": "int", "default": 31536000},
    "server": {"type": "str"},
}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
