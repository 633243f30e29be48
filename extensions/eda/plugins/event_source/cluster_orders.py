# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source of cluster orders: it follows a hub, keeps the status of orders current, and emits the actions they need."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

# ansible-rulebook runs this file by its path, without a collection loader. Resolved links would lead out of the
# collections folder.
_COLLECTIONS = str(Path(__file__).absolute().parents[7])
if _COLLECTIONS not in sys.path:
    sys.path.append(_COLLECTIONS)

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import announce_engine  # noqa: E402

DOCUMENTATION = r"""
---
short_description: Follow cluster orders and emit the actions they need
description:
  - Lists and watches the ClusterOrders of a hub and the objects of their clusters, and accepts webhooks that name
    orders.
  - Updates the status of an order within milliseconds after its cluster changes.
  - Emits an event for each action that orders need, C(provision), C(post_install) or C(delete), and for each
    transition, C(ready), C(degraded), C(failed) or C(deleted).
options:
  kubeconfig:
    description:
      - The kubeconfig of the hub, as an absolute path. The runs that rules start must use the same hub.
      - This and the other options of a connection, C(context), C(host), C(api_key), C(username), C(password),
        C(client_cert), C(client_key), C(ca_cert), C(validate_certs), C(proxy), C(no_proxy), C(impersonate_user) and
        C(impersonate_groups), are those of the modules, with the same environment variables.
    type: raw
  api_group:
    description: The API group of ClusterOrders.
    type: str
    default: cloudkit.openshift.io
  controller:
    description:
      - The controller of orders. With V(external) the namespace, the service account and the finalizer
        C(<group>/finalizer) belong to it.
    type: str
    choices: [self, external]
    default: self
  site_namespace:
    description:
      - The namespace of the site on the hub. It holds the locks of all orders, and the Lease by which several sources
        for one hub elect a leader. Tenants must have no permission in it.
    type: str
    default: openfleet-system
  allowed_addresses:
    description:
      - The addresses at which the site reaches clusters by kubeconfigs of tenants, as the provider C(standalone) does.
        By default there are none. An entry is an address, a network in CIDR notation, or the name of a host, also as
        C(*.example.com).
      - Loopback, link-local, private and reserved addresses need an entry that is such an address or network itself.
    type: list
    elements: str
    default: []
  batch_size:
    description: The number of orders that need the same action in one event.
    type: int
    default: 20
  max_in_flight:
    description: The number of runs or jobs in flight at a time. A job that is pending counts until O(pending_timeout).
    type: int
    default: 4
  start_timeout:
    description:
      - After how many seconds the order of a run that has not locked it reports C(RunNotStarted).
      - The next run comes with a growing delay, and not before O(pending_timeout).
    type: int
    default: 300
  pending_timeout:
    description:
      - After how many seconds a run that has not locked its order counts as lost. Until then it is one of
        O(max_in_flight), and its action is not emitted again, because a job may wait in the queue of Automation
        Platform.
      - As long as O(start_timeout) by default. The rulebook C(cluster_fulfillment_aap) sets V(3600).
    type: int
  poll:
    description: The interval, in seconds, between two requests to a provider whose clusters cannot be watched on the
      hub.
    type: int
    default: 60
  resync:
    description: After how many seconds a settled order is provisioned again, which repairs drift.
    type: int
    default: 3600
  remove_orphans_after:
    description:
      - After how many seconds the working namespace and the cluster of an order that was deleted around the controller
        are deleted, and the Leases of orders in deleted namespaces; and its hosts and addresses released, once the
        namespace is deleted. The time counts from the report of the object.
      - With V(0) they are reported only.
    type: int
    default: 0
  workflows:
    description: The actions that the rulebook launches as workflows. Their events have C(workflow) in C(meta.launch),
      the others C(job).
    type: list
    elements: str
    choices: [provision, post_install, delete]
    default: []
  settings:
    description:
      - Further arguments as a dictionary, so that a rulebook takes them from one variable.
      - An argument that is given by itself takes precedence.
    type: dict
    default: {}
  webhook:
    description:
      - The webhook server and the authentication of senders.
      - A sender must satisfy each of O(webhook.token), O(webhook.hmac_secret) and O(webhook.cafile) that is set.
    type: dict
    suboptions:
      host:
        description: The address to listen at. An address that is not a loopback one requires one of the three, or
          O(webhook.insecure=true).
        type: str
        default: 127.0.0.1
      port:
        description: The port to listen at; V(0) for any.
        type: int
        default: 5000
      token:
        description: The bearer token of senders.
        type: str
      hmac_secret:
        description: The secret with which senders sign the body by HMAC-SHA256.
        type: str
      hmac_header:
        description: The header with the signature, in hexadecimal digits, with or without C(sha256=) before them.
        type: str
        default: X-Hub-Signature-256
      certfile:
        description: The certificate of the server, with its chain. With one, the server accepts TLS only.
        type: path
      keyfile:
        description: The key of O(webhook.certfile), if it is not in the same file.
        type: path
      cafile:
        description: The authority that has signed the certificates of senders. It requires O(webhook.client_names).
        type: path
      client_names:
        description:
          - The names of the certificates that may send. A certificate has to have one of them as a DNS name, or, if it
            has no DNS name, as its common name.
        type: list
        elements: str
        default: []
      health_port:
        description:
          - A port of its own for C(/healthz) and C(/metrics), without TLS and with connections of its own, so that a
            flood of webhooks does not make a probe fail. V(0) for any. Without it they are served at O(webhook.port).
        type: int
      insecure:
        description: Accept webhooks without authentication.
        type: bool
        default: false
      body_limit:
        description: The maximum size of a body, in bytes.
        type: int
        default: 1048576
      rate_limit:
        description: The number of webhooks a second that one client may send, with bursts of twice as many.
        type: int
        default: 200
      max_connections:
        description: The number of open connections of all clients. A connection beyond it is closed.
        type: int
        default: 256
      max_connections_per_client:
        description:
          - The number of open connections of one client, an IPv4 address or an IPv6 network of 64 bits. Behind a proxy,
            all senders are one client.
        type: int
        default: 64
"""

EXAMPLES = r"""
- openfleet.clusters.cluster_orders:
    max_in_flight: 8
    webhook:
      host: 0.0.0.0
      port: 8443
      token: "{{ webhook_token }}"
      certfile: /etc/webhook/tls.crt
      keyfile: /etc/webhook/tls.key
"""


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Called by ansible-rulebook. The whole process ends when it returns, so it never does; it raises where it cannot work."""
    restore_signals()
    announce_engine()
    await serve(queue, args)
