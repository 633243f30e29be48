# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source that makes a hub a part of a fleet: documentation, and one call."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
short_description: Create the clusters that the home cluster of a fleet assigns to this hub
description:
  - Runs on each hub of a fleet. It follows the namespace C(hub-<name>) on the home cluster with a credential for only
    that namespace.
  - Each C(ClusterAssignment) becomes a C(ClusterOrder) in a namespace of its own on the hub, and the status of the
    order becomes that of the assignment. The engine of the hub fulfils the order as any other one.
  - Renews a C(Lease), and reports the checks of the hub, its hosts by class, the templates on offer with their
    parameters, and versions.
  - Answers requests for short-lived kubeconfigs.
  - The hub does not depend on the home cluster. What changes while that is unreachable is reported once it recovers.
  - Of several sources for one hub one works, and the others stand by.
options:
  hub:
    description: The name of the C(Hub) on the home cluster.
    type: str
    required: true
  home:
    description:
      - How to reach the home cluster, with the connection options of this collection's modules (C(kubeconfig),
        C(context)...). Environment variables are not used for it.
      - C(kubeconfig) is best the path of a file. A file with another credential is used once the home cluster refuses
        the former one.
    type: dict
    required: true
  kubeconfig:
    description:
      - The kubeconfig of the hub.
      - This and the other options of a connection, C(context), C(host), C(api_key), C(username), C(password),
        C(client_cert), C(client_key), C(ca_cert), C(validate_certs), C(proxy), C(no_proxy), C(impersonate_user) and
        C(impersonate_groups), are those of the modules, with the same environment variables.
    type: raw
  api_group:
    description: The API group of ClusterOrders.
    type: str
    default: cloudkit.openshift.io
  controller:
    description: The controller of orders on the hub, as in C(openfleet.clusters.cluster_orders).
    type: str
    choices: [self, external]
    default: self
  site_namespace:
    description: The namespace of the site on the hub, with its settings, and the Lease by which several sources elect a
      leader.
    type: str
    default: openfleet-system
  allowed_addresses:
    description: The addresses at which the site reaches clusters by kubeconfigs of tenants, as in
      C(openfleet.clusters.cluster_orders).
    type: list
    elements: str
    default: []
  heartbeat:
    description: The interval, in seconds, between two renewals of the Lease. At most V(20).
    type: int
    default: 10
  report:
    description: The interval, in seconds, at which the hub is checked. Changes of hosts are reported at once.
    type: int
    default: 20
  health:
    description: Where C(/healthz) and C(/metrics) are served.
    type: dict
    suboptions:
      host:
        description: The address to listen at.
        type: str
        default: 127.0.0.1
      port:
        description: The port to listen at; V(0) for any.
        type: int
        default: 5002
  collections_paths:
    description:
      - The folders of collections with templates. By default those of C(ANSIBLE_COLLECTIONS_PATH), or Ansible's own,
        and that of this collection.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Agent of the hub east
  hosts: localhost
  sources:
    - openfleet.clusters.fleet_agent:
        hub: east
        home:
          kubeconfig: /etc/openfleet-home/kubeconfig
  rules:
    - name: Report a cluster that failed
      condition: event.type == "assignment_reconciled" and event.state == "Failed"
      action:
        debug:
          msg: "{{ event.namespace }}/{{ event.name }}: {{ event.message }}"
"""

# ansible-rulebook loads this file without Ansible's collection loader, so the folder of collections must be on the
# path.
sys.path.insert(0, str(Path(__file__).absolute().parents[7]))

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_source import serve  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals  # noqa: E402


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Called by ansible-rulebook. It runs until it is cancelled: if it returned, the whole process would end."""
    restore_signals()
    await serve(queue, args)
