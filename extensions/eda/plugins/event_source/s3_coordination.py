# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source that elects leaders for workloads through an S3 bucket: documentation, store check, one call."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
short_description: Elect leaders for workloads of several clusters through an S3 bucket
description:
  - Contends for the lease of each workload, renews the leases it holds, and releases them when ansible-rulebook ends
    with SIGTERM. Pass the epoch of an event to each action that follows from it; every module that writes checks the
    epoch.
  - At its start it checks that the store honours conditional writes. It does not run on a store that fails this check.
options:
  bucket:
    description: Name of the bucket.
    type: str
    required: true
  workloads:
    description:
      - The workloads to lead and watch, each as C(<namespace>/<name>) of its C(DRPlacementControl), or as a dictionary
        with C(namespace) and C(name).
      - If not set, the source follows the C(DRPlacementControl) objects of the cluster that O(kubernetes) describes. It
        contends for a lease when one is created, and releases it when that is deleted.
    type: list
    elements: raw
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
      - If set, the reported health says whether the API server answers and accepts the credentials. Otherwise it only
        says that this source runs.
      - Required if O(workloads) is not set, or if O(registry_namespace) is set.
    type: dict
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
- name: Follow the leader
  hosts: localhost
  sources:
    - openfleet.clusters.s3_coordination:
        bucket: coordination
        cluster: east
        kubernetes:
          kubeconfig: /etc/openfleet/kubeconfig
        registry_namespace: openfleet-system
  rules:
    - name: Begin to lead
      condition: event.type == "leader_acquired"
      action:
        debug:
          msg: "This cluster leads {{ event.namespace }}/{{ event.name }} under epoch {{ event.epoch }}"
"""

# ansible-rulebook loads this file without Ansible's collection loader, so the folder of collections must be on the
# path.
sys.path.insert(0, str(Path(__file__).absolute().parents[7]))

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.coordination_source import CoordinationSource  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.store_ready import require_store  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect  # noqa: E402


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Called by ansible-rulebook. It runs until it is cancelled: if it returned, the whole process would end."""
    settings = Settings.from_arguments(args)
    restore_signals()
    store = connect(settings.store, settings.connections)
    await require_store(store, settings)
    await CoordinationSource(store, settings).run(queue.put)
