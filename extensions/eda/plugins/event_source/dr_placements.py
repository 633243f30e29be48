# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source that reconciles DRPlacementControls on a managed cluster: documentation, store check, one call."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
short_description: Reconcile the DRPlacementControls of a managed cluster, without a hub
description:
  - Contends for the lease of each C(DRPlacementControl) of the cluster in an S3 bucket, as
    C(openfleet.clusters.s3_coordination) does, and passes on the same events.
  - Leads the workloads whose lease it has, and shows the state of the others on their C(DRPlacementControl), as
    M(openfleet.clusters.dr_placement) does. It starts no failover by itself.
  - Each reconcile that records or does something is an event of the type V(placement_reconciled), with the fields of
    RV(openfleet.clusters.dr_placement#module:placements).
  - At its start it checks that the store honours conditional writes. It does not run on a store that fails this check.
options:
  bucket:
    description: Name of the bucket.
    type: str
    required: true
  holder:
    description: Name of this contender, for people to read. Defaults to O(cluster), or else to the host name.
    type: str
  cluster:
    description:
      - Name of the cluster that this process runs for. If set, the source reports the health of this cluster in the
        bucket.
    type: str
  kubernetes:
    description:
      - How to reach the API server of O(cluster), with the connection options of this collection's modules
        (C(kubeconfig), C(context)...).
    type: dict
    required: true
  site_namespace:
    description:
      - The namespace on O(cluster) with the C(ClusterRegistry) of the peers, the Secrets of their kubeconfigs, and the
        ConfigMap C(dr-settings).
    type: str
    default: openfleet-system
  registry_namespace:
    description:
      - If set, the source checks the clusters of each C(ClusterRegistry) in this namespace of O(cluster), and updates
        its status. Of several sources for one cluster only one does.
    type: str
  registry_interval:
    description: Interval in seconds at which registered clusters are checked.
    type: float
    default: 60
  ttl:
    description:
      - Duration of a lease without renewal, in seconds. The holder renews it at half of this time. Set the same value
        on all contenders.
    type: float
    default: 30
  poll_interval:
    description: Interval in seconds at which locks, states and clusters are polled.
    type: float
    default: 5
  connections:
    description: Maximum number of connections to the store. Half of them serve leases only.
    type: int
    default: 16
  endpoint_url: &store
    description: How to reach the store, as in M(openfleet.clusters.s3_lock).
    type: str
  region: *store
  access_key: *store
  secret_key: *store
  session_token: *store
  profile: *store
  aws_ca_bundle: *store
  validate_certs: *store
  path_style: *store
  encryption_mode: *store
  encryption_kms_key_id: *store
"""

EXAMPLES = r"""
- name: Disaster recovery
  hosts: localhost
  sources:
    - openfleet.clusters.dr_placements:
        bucket: coordination
        cluster: east
        kubernetes:
          kubeconfig: /etc/openfleet/kubeconfig
  rules:
    - name: Report what a workload waits for
      condition: event.type == "placement_reconciled" and event.ended == "Waiting"
      action:
        debug:
          msg: "{{ event.namespace }}/{{ event.name }} waits for {{ event.waits }}"
"""

# ansible-rulebook loads this file without Ansible's collection loader, so the folder of collections must be on the
# path.
sys.path.insert(0, str(Path(__file__).absolute().parents[7]))

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.dr_controller import DrController  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import DR_PLACEMENTS, Settings  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.store_ready import require_store  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect  # noqa: E402


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Called by ansible-rulebook. It runs until it is cancelled: if it returned, the whole process would end."""
    settings = Settings.from_arguments(args, DR_PLACEMENTS)
    restore_signals()
    store = connect(settings.store, settings.connections)
    await require_store(store, settings)
    await DrController(store, settings).run(queue.put)
