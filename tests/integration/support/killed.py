"""Kills the API server of a cluster as the loss of its site does. `sandbox.up` starts it again."""

from __future__ import annotations

import os
import signal

from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox


def kill_cluster(sandbox: Sandbox, site: str) -> None:
    for process in sandbox.status():
        if process.owner == site and process.name in ("kube-apiserver", "etcd"):
            os.kill(process.pid, signal.SIGKILL)
