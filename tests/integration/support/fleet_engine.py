"""A process that reconciles the clusters of one tenant again and again until its standard input ends, as an engine would."""

from __future__ import annotations

import sys
import threading

from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import observe
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube


def main() -> None:
    kubeconfig, namespace = sys.argv[1:]
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    home = Kube.connect({"kubeconfig": kubeconfig})
    while not ended.is_set():
        Reconciler(home, namespace).reconcile(observe(home, namespace))
        print("reconciled", flush=True)


if __name__ == "__main__":
    main()
