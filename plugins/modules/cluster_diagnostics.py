#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_diagnostics
short_description: Collect everything about an order and its cluster for a support case
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Writes one archive with the order, its conditions, its lock, who worked on it, every object in its namespace, events, and what
    its cluster tells of nodes, namespaces, events and OpenShift's operators.
  - It holds no secrets. Contents of Secrets are not written, and where one of them occurs elsewhere it is replaced, as are private keys
    and tokens.
  - What could not be read is told in the archive and in RV(not_read), and is no failure.
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
    description: The archive to write where Ansible runs, a C(.tar.gz) file. It is for its owner only.
    type: path
    required: true
  client:
    description: The C(oc) or C(kubectl) to ask with, a name or a path. Default is C(oc), and C(kubectl) where that is missing.
    type: str
attributes:
  check_mode:
    support: full
    details: Everything is read, and nothing is written.
  diff_mode:
    support: none
    details: An archive cannot be shown.
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
- name: Collect what a support case needs
  openfleet.clusters.cluster_diagnostics:
    name: demo
    namespace: orders
    dest: "{{ playbook_dir }}/orders-demo.tar.gz"
  register: collected

- name: Say what is in it
  ansible.builtin.debug:
    var: collected.files
"""

RETURN = r"""
dest:
  description: Where the archive is.
  returned: success
  type: str
  sample: /home/operator/orders-demo.tar.gz
files:
  description: What is in it.
  returned: success
  type: list
  elements: str
  sample: [hub/HostedCluster.json, order.json, summary.txt]
not_read:
  description: What could not be read, a line each.
  returned: success
  type: list
  elements: str
  sample: ["The cluster was not asked: none is made yet."]
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
