# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source that holds leases in an S3 bucket and tells what changes there: arguments, the proof of the store, one call."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
short_description: Lead and watch placements of several clusters through an S3 bucket
description:
  - Holds the lease of each place for as long as it runs, or waits for it, renews it, and gives it back when ansible-rulebook is
    ended with SIGTERM. Every action that follows from an event is given the epoch, and every module that acts checks it.
  - When it starts it proves that the store honours conditional writes, and refuses to run on one that does not.
options:
  bucket:
    description: Name of the bucket.
    type: str
    required: true
  places:
    description: What to lead and watch, each as C(<namespace>/<name>) or as a dictionary with C(namespace) and C(name).
    type: list
    elements: raw
    required: true
  holder:
    description: Who leads, for people to read. The name of the cluster, or of the machine where none is given.
    type: str
  cluster:
    description: Name of the cluster that this runs for. Its health is then written into the bucket.
    type: str
  kubernetes:
    description:
      - How to reach the API server of O(cluster), with the options that the modules of this collection have (C(kubeconfig), C(context)...).
      - With it, the health of the cluster is whether its API server answers and knows us; without, only that this source is alive.
    type: dict
  ttl:
    description: For how many seconds a lease lasts without renewal. It is renewed every half of that. The same for all that contend.
    type: float
    default: 30
  poll_interval:
    description: How often, in seconds, to look at locks, states and clusters.
    type: float
    default: 5
  connections:
    description: How many connections to the store at most, half of them for leases.
    type: int
    default: 16
  endpoint_url: &store
    description: How to reach the store, as in the modules M(openfleet.clusters.s3_lock) and others.
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
        bucket: agreements
        cluster: east
        places: [shop/database]
  rules:
    - name: Begin to lead
      condition: event.type == "leader_acquired"
      action:
        debug:
          msg: "{{ event.namespace }}/{{ event.name }} is ours under epoch {{ event.epoch }}"
"""

# ansible-rulebook loads this file without Ansible's loader of collections, so their folder has to be made known.
sys.path.insert(0, str(Path(__file__).absolute().parents[7]))

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_checker import ArgumentChecker  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_spec_reader import read_options  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, S3  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Place  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.manager import LeaseManager, Probe, Settings  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.probe import probe_of  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import BadOptions, S3Error  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect  # noqa: E402
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import prove, require  # noqa: E402

OPTIONS: dict[str, Any] = S3 | {
    "places": {"type": "list", "elements": "raw", "required": True},
    "holder": {"type": "str"},
    "cluster": {"type": "str"},
    "kubernetes": {"type": "dict", "options": KUBERNETES},
    "ttl": {"type": "float", "default": 30},
    "poll_interval": {"type": "float", "default": 5},
    "connections": {"type": "int", "default": 16},
}
CHECKER = ArgumentChecker("event source", noun="argument", empty_is_unset=True)
RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """What ansible-rulebook calls. It ends only when it is cancelled: were it to return, the whole process would end."""
    arguments = checked(args)
    settings = settings_of(arguments)
    restore_signals()
    store = connect(arguments, settings.connections)
    await proven(store, f"Bucket {arguments['bucket']} at {arguments.get('endpoint_url') or 'AWS'}")
    await LeaseManager(store, settings).run(queue.put)


async def proven(store: ObjectStore, where: str) -> None:
    """Wait until the store can be asked, and end unless it honours conditions."""
    while True:
        try:
            require(await asyncio.to_thread(prove, store), where)
            return
        except S3Error as error:
            if not error.retryable:
                raise
            log.error("s3_coordination: %s", error)
            await asyncio.sleep(RETRY_SECONDS)


def checked(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in their types, with defaults; one message has every mistake."""
    problems: list[str] = []
    options = read_options({"options": OPTIONS, "required_by": {"kubernetes": ["cluster"]}}, problems)
    arguments = CHECKER.check(options, args, problems)
    if problems:
        raise BadOptions(f"openfleet.clusters.s3_coordination cannot start: {'; '.join(problems)}.")
    return arguments


def settings_of(arguments: Mapping[str, Any]) -> Settings:
    cluster = arguments.get("cluster", "")
    probe: Probe | None = probe_of(arguments["kubernetes"]) if "kubernetes" in arguments else None
    return Settings(
        places=places_of(arguments["places"]),
        holder=arguments.get("holder") or cluster or socket.gethostname(),
        ttl=arguments["ttl"],
        poll=arguments["poll_interval"],
        connections=arguments["connections"],
        cluster=cluster,
        probe=probe,
    )


def places_of(given: list[Any]) -> list[Place]:
    if not given:
        raise BadOptions("places must be a list with one place at least, each as namespace/name.")
    places = [Place(*_names(item)) for item in given]
    twice = sorted({str(place) for place in places if places.count(place) > 1})
    if twice:
        raise BadOptions(f"places has these more than once: {', '.join(twice)}.")
    return places


def _names(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping) and set(item) == {"namespace", "name"}:
        return str(item["namespace"]), str(item["name"])
    if isinstance(item, str) and item.count("/") == 1:
        namespace, name = item.split("/")
        return namespace, name
    raise BadOptions(f"{item!r} is no place: write namespace/name, or a dictionary with namespace and name.")
