#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_addon
short_description: Install an add-on of a provider in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Installs an add-on that the provider of the cluster offers, or changes its parameters. Of the providers of this
    collection, C(ocm) has add-ons. Others fail with C(NotSupported).
  - Starts the installation and does not wait for it.
options:
  addon:
    description: Id of the add-on at the provider.
    type: str
    required: true
  parameters:
    description: Parameters of the add-on. Their values are never shown.
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
  - module: openfleet.clusters.cluster_operators
"""

EXAMPLES = r"""
- name: Install an add-on
  openfleet.clusters.cluster_addon:
    name: lab
    namespace: clusters
    provider: ocm
    addon: logging-operator
    parameters:
      size: small
  register: addon

- name: Show whether it is ready
  ansible.builtin.debug:
    msg: "{{ addon.part.reason }}"
"""

RETURN = r"""
part:
  description:
    - Whether the part is ready. A cluster that does not serve what the task needs yet is no failure. Run the task again
      later.
  returned: success
  type: dict
  contains:
    ready:
      description: Whether it is ready.
      type: bool
      returned: always
      sample: false
    reason:
      description: The reason in one word.
      type: str
      returned: always
      sample: Installing
    message:
      description: What is missing.
      type: str
      returned: always
      sample: The add-on logging-operator is being installed
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
      sample: AddOnInstallation
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: logging-operator
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
    "addon": {"type": "str", "required": True},
    "parameters": {"type": "dict", "default": {}, "no_log": True},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
