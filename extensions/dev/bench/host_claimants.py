"""Clusters that claim hosts at once, some of whose runs are killed in the middle: a program of its own, which forks a process for each."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DEFAULT_GROUP
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.agent_hosts import AgentInventory, AgentLabels
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.claim_record import ClaimRecord
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_owner import ClusterOwner
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.host_claims import HostClaims
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, acquire, release

LABELS = AgentLabels(DEFAULT_GROUP)


def claim(kubeconfig: str, namespace: str, cluster: str, wanted: dict[str, int], dies_at: int | None) -> None:
    """Claim the hosts of one cluster under its lock. The process kills itself right after its write with the number `dies_at`."""
    kube = Kube.connect({"kubeconfig": kubeconfig})
    if dies_at is not None:
        _make_mortal(kube, dies_at)
    # The next run of a killed one has its name, and need not wait until the lock expires.
    lock = acquire(kube, namespace, cluster, "claimant")
    writer = FencedWriter(kube, lock, LABELS.token)
    owner = ClusterOwner(namespace, cluster)
    classes = {name: {LABELS.resource_class: name} for name in wanted}
    inventory = AgentInventory(kube, namespace, owner.key, cluster, LABELS, classes, {}, writer)
    HostClaims(ClaimRecord(kube, SITE_NAMESPACE, inventory.name), inventory, owner, writer).present(wanted)
    release(kube, lock)


def _make_mortal(kube: Kube, dies_at: int) -> None:
    send, writes = kube._transport.request, [0]  # noqa: SLF001 - no part of a client is for this

    def mortal(method: str, *arguments: Any, **options: Any) -> Any:
        answer = send(method, *arguments, **options)
        writes[0] += method != "GET"
        if writes[0] >= dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    kube._transport.request = mortal  # type: ignore[method-assign]  # noqa: SLF001


def start(kubeconfig: str, namespace: str, cluster: str, wanted: dict[str, int], dies_at: int | None) -> int:
    process = os.fork()
    if process:
        return process
    try:
        claim(kubeconfig, namespace, cluster, wanted, dies_at)
    except BaseException as error:  # noqa: BLE001 - a fork must not go on with what its parent does
        print(f"{cluster}: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Read kubeconfig, namespace, wanted hosts, and for each cluster the write at which its first run dies, or null."""
    given = json.load(sys.stdin)
    where = given["kubeconfig"], given["namespace"]
    started = time.monotonic()
    clusters = {start(*where, name, given["wanted"], dies_at): name for name, dies_at in given["clusters"].items()}
    killed, failed = [], []
    while clusters:
        process, status = os.wait()
        name = clusters.pop(process)
        if os.WIFSIGNALED(status):
            killed.append(name)
            clusters[start(*where, name, given["wanted"], None)] = name
        elif status:
            failed.append(name)
    print(json.dumps({"seconds": time.monotonic() - started, "killed": killed, "failed": failed}))


if __name__ == "__main__":
    main()
