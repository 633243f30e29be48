# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source of a fleet: it reconciles the clusters of tenants on the home cluster, and reports their state."""

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

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_source import serve  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals  # noqa: E402

DOCUMENTATION = r"""
---
short_description: Reconcile the clusters of a fleet on its home cluster
description:
  - Lists and watches FleetClusters, Hubs, FleetQuotas and ClusterAssignments of the home cluster, and the heartbeats
    and reports of the agents of all hubs.
  - Reserves quota, binds clusters to hubs, keeps their assignments and their status current, deletes clusters whose
    time is over, and writes records of deleted ones. Of several sources for one home cluster, one leads.
  - Emits an event for each transition. Its C(type) is V(cluster_accepted), V(cluster_scheduled),
    V(cluster_unschedulable), V(cluster_ready), V(cluster_degraded), V(cluster_failed), V(cluster_expiring),
    V(cluster_expired), V(cluster_denied), V(cluster_deleted), V(hub_not_ready) or V(hub_ready).
  - An event of a cluster has C(cluster) with C(namespace), C(name) and C(uid), and C(hub), C(template), C(reason) and
    C(message). One of a hub has C(hub), C(uid), the number of its C(clusters), C(reason) and C(message).
options:
  kubeconfig:
    description:
      - The kubeconfig of the home cluster, as an absolute path.
      - This and the other options of a connection, C(context), C(host), C(api_key), C(username), C(password),
        C(client_cert), C(client_key), C(ca_cert), C(validate_certs), C(proxy), C(no_proxy), C(impersonate_user) and
        C(impersonate_groups), are those of the modules, with the same environment variables.
    type: raw
  site_namespace:
    description:
      - The namespace of the site on the home cluster. It has the Lease by which several sources elect a leader, and the
        FleetQuota that counts for tenants without limits of their own.
    type: str
    default: openfleet-system
  hub_timeout:
    description:
      - After how many seconds without a heartbeat of its agent a hub is lost. It gets no further clusters then; those
        that it has stay.
    type: int
    default: 180
  sweep:
    description: The interval, in seconds, between two comparisons of all reservations with the clusters, which repairs
      what differs.
    type: int
    default: 300
  secrets_poll:
    description: The interval, in seconds, at which Secrets that clusters refer to are read again.
    type: int
    default: 60
  weights:
    description: How much each score of the scheduler counts.
    type: dict
    suboptions:
      headroom:
        description: What is left of the scarcest resource of the hub.
        type: int
        default: 1
      spread:
        description: Hubs with fewer clusters of the tenant.
        type: int
        default: 1
      affinity:
        description: Hubs that are dedicated to some tenants.
        type: int
        default: 2
      region:
        description: Hubs in the region of the tenant's namespace.
        type: int
        default: 2
  records:
    description:
      - What happens to the records of deleted clusters. Without a bucket and without limits they stay on the home
        cluster.
      - The other options of a store are those of M(openfleet.clusters.s3_lock), C(endpoint_url), C(region),
        C(access_key), C(secret_key), C(session_token), C(profile), C(aws_ca_bundle), C(validate_certs), C(path_style),
        C(encryption_mode) and C(encryption_kms_key_id).
    type: dict
    suboptions:
      bucket:
        description: The bucket that records are exported to, as JSON lines in one object for each day.
        type: str
      prefix:
        description: What the names of these objects begin with.
        type: str
        default: fleet/records
      interval:
        description: The interval, in seconds, between two exports.
        type: int
        default: 300
      max_age:
        description:
          - After which time a record is deleted, such as V(72h) or V(90d). With a bucket, only exported records are
            deleted.
        type: str
      max_number:
        description: How many records of each tenant are kept.
        type: int
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
        default: 5001
  settings:
    description:
      - Further arguments as a dictionary, so that a rulebook takes them from one variable.
      - An argument that is given by itself takes precedence.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- openfleet.clusters.fleet:
    kubeconfig: /etc/openfleet/kubeconfig
    hub_timeout: 300
    records:
      bucket: fleet
      max_age: 90d
    health:
      host: 0.0.0.0
      port: 8081
"""


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Called by ansible-rulebook. The whole process ends when it returns, so it never does; it raises where it cannot work."""
    restore_signals()
    await serve(queue, args)
