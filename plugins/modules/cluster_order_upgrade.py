#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_upgrade
short_description: Move cluster orders to a release in waves
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Sets one parameter of orders, for example their release image, and nothing else. The rulebooks or playbooks of this
    collection then upgrade the clusters.
  - The orders move in waves. The next wave starts when all orders of the last one are Ready. If an order that has the
    release is Failed or Degraded, no further order moves and the task fails with a report.
  - The task moves the wave that is due and ends. Run it again to continue, for example on a schedule. The state is in
    the orders, so an upgrade continues where it stopped.
  - Requires at least one of O(templates), O(label_selectors), O(phases) and O(orders). An order must meet all that are
    set.
  - Refuses a release that a template or the settings of the site do not allow before it changes an order.
options:
  release:
    description: The value of O(parameter) that the orders move to.
    type: str
    required: true
  parameter:
    description:
      - The parameter of the templates that has the release, for example V(release_image) or V(version).
      - Orders of templates without this parameter are skipped.
    type: str
    default: release_image
  templates:
    description: Templates of the orders. A name without dots is a template of C(openfleet.clusters).
    type: list
    elements: str
  label_selectors:
    description: Label selectors of the orders, all of which must match.
    type: list
    elements: str
  phases:
    description:
      - Phases of the orders that may move. Others are skipped. Without this option only orders that are V(Ready) move.
      - An order that has the release is part of the upgrade in any phase.
    type: list
    elements: str
    choices: [Progressing, Ready, Failed, Degraded]
  orders:
    description: Orders by name, each as C(<namespace>/<name>) or as a dictionary with C(name) and C(namespace).
    type: list
    elements: raw
  canary:
    description:
      - Number of orders in the first wave, at most O(max_unavailable). V(0) means no wave of its own.
      - Orders that have the release already count as upgraded.
    type: int
    default: 1
  max_unavailable:
    description: Number of orders in each further wave, or a percentage of the selected orders, rounded down.
    type: str
    default: 10%
  degraded_after:
    description:
      - Seconds after which an order fails the wave if its cluster is still unavailable and reports that it is degraded
        before the upgrade is complete.
      - A control plane can report this for a while when its replicas are replaced.
    type: int
    default: 600
  wait_timeout:
    description: Seconds to continue with the next waves. After that the task ends without a failure.
    type: int
    default: 0
seealso:
  - module: openfleet.clusters.cluster_order
  - module: openfleet.clusters.cluster_order_info
attributes:
  check_mode:
    support: full
    details: Returns the plan. The task does not wait.
  diff_mode:
    support: full
    details: Of template parameters it shows the names and which of them change, never the values.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Plan the upgrade
  openfleet.clusters.cluster_order_upgrade:
    release: quay.io/openshift-release-dev/ocp-release:4.17.1-multi
    label_selectors: [team=blue]
  check_mode: true
  register: planned

- name: Show the plan
  ansible.builtin.debug:
    var: planned.report

- name: Move the next wave of blue orders, one order first and then five at a time
  openfleet.clusters.cluster_order_upgrade:
    release: quay.io/openshift-release-dev/ocp-release:4.17.1-multi
    templates: [ocp_4_17_small]
    label_selectors: [team=blue]
    canary: 1
    max_unavailable: "5"
"""

RETURN = r"""
complete:
  description: Whether all selected orders have the release and are Ready.
  returned: success
  type: bool
  sample: false
waves:
  description: The waves to come, each as a list of C(<namespace>/<name>). In check mode the first one is due now.
  returned: success
  type: list
  elements: list
  sample: [["orders/demo"], ["orders/second", "orders/third"]]
report:
  description: The plan in lines.
  returned: success
  type: list
  elements: str
  sample: ["release_image quay.io/openshift-release-dev/ocp-release:4.17.1-multi: 1 upgraded, 2 pending"]
orders:
  description: The selected orders.
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the order.
      type: str
      returned: always
      sample: orders
    name:
      description: Name of the order.
      type: str
      returned: always
      sample: demo
    state:
      description: V(upgraded), V(upgrading), V(failed), V(pending) or V(skipped).
      type: str
      returned: always
      sample: pending
    message:
      description: Why it is upgrading, failed or skipped.
      type: str
      returned: always
      sample: its phase is Failed, not Ready
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "release": {"type": "str", "required": True},
    "parameter": {"type": "str", "default": "release_image"},
    "templates": {"type": "list", "elements": "str"},
    "label_selectors": {"type": "list", "elements": "str"},
    "phases": {"type": "list", "elements": "str", "choices": ["Progressing", "Ready", "Failed", "Degraded"]},
    "orders": {"type": "list", "elements": "raw"},
    "canary": {"type": "int", "default": 1},
    "max_unavailable": {"type": "str", "default": "10%"},
    "degraded_after": {"type": "int", "default": 600},
    "wait_timeout": {"type": "int", "default": 0},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
