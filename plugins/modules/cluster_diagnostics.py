#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_diagnostics
short_description: Collect diagnostics of an order and its cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Writes one archive with the order, its conditions, its lock and its runs, every object of its namespace, events, and
    the nodes, namespaces, events and OpenShift operators of its cluster.
  - The archive contains no secrets. The module leaves out the content of Secrets, and redacts it, private keys and
    tokens elsewhere.
  - An object that cannot be read does not fail the task. The archive and RV(not_read) list it.
options:
  name:
    description: Name of the order.
    type: str
    required: true
  namespace:
    description: Namespace of the order.
    type: str
    required: true
  dest:
    description: Path of the archive on the controller, a C(.tar.gz) file. Only its owner can read it.
    type: path
    required: true
  client:
    description: Name or path of the C(oc) or C(kubectl) binary. Default is C(oc), or C(kubectl) if C(oc) is not
      installed.
    type: str
attributes:
  check_mode:
    support: full
    details: Reads everything and does not write the archive.
  diff_mode:
    support: none
    details: The archive is a binary file.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
requirements:
  - openshift-client
  - oc or kubectl
seealso:
  - module: openfleet.clusters.cluster_order_info
"""

EXAMPLES = r"""
- name: Collect diagnostics for a support case
  openfleet.clusters.cluster_diagnostics:
    name: demo
    namespace: orders
    dest: "{{ playbook_dir }}/orders-demo.tar.gz"
  register: collected

- name: Show the content of the archive
  ansible.builtin.debug:
    var: collected.files
"""

RETURN = r"""
dest:
  description: Path of the archive.
  returned: success
  type: str
  sample: /home/operator/orders-demo.tar.gz
files:
  description: Files in the archive.
  returned: success
  type: list
  elements: str
  sample: [hub/HostedCluster.json, order.json, summary.txt]
not_read:
  description: Objects that could not be read, with the reason.
  returned: success
  type: list
  elements: str
  sample: ["The cluster was not read: no cluster exists yet."]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "dest": {"type": "path", "required": True},
    "client": {"type": "str"},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
