#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hub_preparation
short_description: Prepare a cluster as a hub of a fleet, and check what it lacks
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates the CustomResourceDefinitions, the namespace of the site, accounts and permissions that the engine and the
    agent of a hub need. Definitions are updated; other objects that exist stay as they are.
  - Stores the credential of the agent for the home cluster, if it is given.
  - Checks what the hub needs to take clusters, as its agent does. Deployments are the site's.
options:
  home_kubeconfig:
    description: The kubeconfig of the agent for the home cluster, as
      RV(openfleet.clusters.hub_access#module:kubeconfig) has it.
    type: dict
seealso:
  - module: openfleet.clusters.hub_access
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Prepare the hub
  openfleet.clusters.hub_preparation:
    kubeconfig: /etc/openfleet/east.kubeconfig
  register: preparation

- name: Show what it lacks
  ansible.builtin.debug:
    var: preparation.missing
"""

RETURN = r"""
applied:
  description: The objects that were created or updated; in check mode, would be.
  returned: success
  type: list
  elements: str
  sample: ["CustomResourceDefinition clusterorders.cloudkit.openshift.io"]
needs_credential:
  description: Whether the agent has no credential for the home cluster, or one that expires within 30 days.
  returned: success
  type: bool
  sample: false
checks:
  description: What the hub needs to take clusters.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the check.
      type: str
      returned: always
      sample: dns
    passed:
      description: Whether the hub has it.
      type: bool
      returned: always
      sample: true
    message:
      description: What to do, if it has not.
      type: str
      returned: always
      sample: ""
missing:
  description: The checks that did not pass, with what to do.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {"home_kubeconfig": {"type": "dict", "no_log": True}}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
