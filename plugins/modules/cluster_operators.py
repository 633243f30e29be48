#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_operators
short_description: Manage operators in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Subscribes a cluster to operators with its Operator Lifecycle Manager (OLM) and reports how far each is installed.
  - Uninstalls operators that the module installed and that are no longer listed. Their custom resource definitions
    stay, as OLM leaves them.
options:
  state:
    description:
      - V(present) applies it.
      - V(absent) removes what the module has created. It is removed when RV(part.ready) is true.
    type: str
    choices: [present, absent]
    default: present
  operators:
    description: The operators.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the package in the catalog. The Subscription has the same name.
        type: str
        required: true
      channel:
        description: Channel of the package. Defaults to the default channel of the catalog.
        type: str
      source:
        description: Name of the CatalogSource.
        type: str
        default: redhat-operators
      source_namespace:
        description: Namespace of the CatalogSource.
        type: str
        default: openshift-marketplace
      namespace:
        description:
          - Namespace of the operator. V(openshift-operators) is for operators of the whole cluster.
          - The module creates any other namespace, with an OperatorGroup.
        type: str
        default: openshift-operators
      all_namespaces:
        description: Whether an operator in a namespace of its own watches all namespaces.
        type: bool
        default: false
      install_plan_approval:
        description: Whether OLM installs new versions by itself.
        type: str
        choices: [Automatic, Manual]
        default: Automatic
      starting_csv:
        description: Name of the ClusterServiceVersion to install first.
        type: str
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster_addon
"""

EXAMPLES = r"""
- name: Install two operators
  openfleet.clusters.cluster_operators:
    name: lab
    namespace: clusters
    provider: hypershift
    operators:
      - name: web-terminal
        channel: fast
      - name: gpu-operator-certified
        source: certified-operators
        namespace: nvidia-gpu-operator
  register: installed

- name: Show the operators that are not ready yet
  ansible.builtin.debug:
    msg: "{{ installed.operators | rejectattr('ready') | map(attribute='name') }}"

- name: Uninstall the operators
  openfleet.clusters.cluster_operators:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
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
      description: Whether it is ready, or with O(state=absent) removed.
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
      sample: The operator web-terminal is being installed
operators:
  description: How far each operator is installed.
  returned: if O(state=present) and the cluster serves OLM
  type: list
  elements: dict
  contains:
    name:
      description: Name of the operator.
      type: str
      returned: always
      sample: web-terminal
    namespace:
      description: Its namespace.
      type: str
      returned: always
      sample: openshift-operators
    version:
      description: The installed version. Empty before the first one is installed.
      type: str
      returned: always
      sample: 1.11.1
    ready:
      description: Whether the operator is installed.
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
      sample: The operator web-terminal is being installed
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
      sample: Subscription
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: web-terminal
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
    "operators": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "channel": {"type": "str"},
            "source": {"type": "str", "default": "redhat-operators"},
            "source_namespace": {"type": "str", "default": "openshift-marketplace"},
            "namespace": {"type": "str", "default": "openshift-operators"},
            "all_namespaces": {"type": "bool", "default": False},
            "install_plan_approval": {"type": "str", "choices": ["Automatic", "Manual"], "default": "Automatic"},
            "starting_csv": {"type": "str"},
        },
    },
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
