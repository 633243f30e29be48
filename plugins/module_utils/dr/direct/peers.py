# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests to registered clusters, each with a total deadline. A cluster that hangs delays no other."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from ...kube.client import Kube
from ...kube.errors import KubeError, Unexpected
from ...kube.untrusted import BadKubeconfig
from ...registry.clients import MAX_THREADS, Client, ClusterClients, HubError
from ...registry.health import SecretNotFound
from ...registry.model import ClusterRegistry, RegisteredCluster
from ..errors import answer_of
from ..read_results import Unauthorized, Unknown, Unreachable
from .response_timeouts import ResponseTimeouts

Result = TypeVar("Result")


class Peers:
    """The clusters of a registry, for one reconcile. All requests for one answer of a cluster may take `seconds` together."""

    def __init__(
        self, registry: ClusterRegistry, clients: ClusterClients, seconds: float, timeouts: ResponseTimeouts | None = None
    ) -> None:
        self.registry = registry
        self.seconds = seconds
        self._clients = clients
        self._timeouts = timeouts or ResponseTimeouts()
        self._clusters = {cluster.name: cluster for cluster in registry.clusters}
        self._connected: dict[str, Client] = {}
        self._connecting = {name: threading.Lock() for name in self._clusters}

    def call(self, name: str, work: Callable[[Kube], Result]) -> Result | Unknown:
        """Call `work` with the connection to a cluster. HubError if its Secret cannot be read."""
        cluster = self._clusters.get(name)
        if cluster is None:
            return Unauthorized(f"{self.registry} has no cluster {name}: register it, with a Secret for its kubeconfig.")
        try:
            return self._clients.call(cluster, work, self._connection(cluster))
        except HubError:
            raise
        except KubeError as error:
            return answer_of(error)
        except Exception as fault:  # noqa: BLE001 - of any kind: the answers of the other clusters count
            return answer_of(Unexpected(fault))

    def connections(self, own: str) -> dict[str, Kube]:
        """The connections to all clusters but `own`. One whose Secret is missing or invalid has none."""
        found = {}
        for cluster in self.registry.clusters:
            with contextlib.suppress(BadKubeconfig, SecretNotFound):
                if cluster.name != own:
                    found[cluster.name] = self._clients.client(cluster).kube
        return found

    def call_all(self, names: Sequence[str], work: Callable[[Kube], Result]) -> dict[str, Result | Unknown]:
        """Call `work` for several clusters at once. A cluster that has not answered at the deadline is Unreachable."""
        answers: dict[str, Result | Unknown] = {}
        timeouts = {name: self._timeouts.seconds(name, self.seconds) for name in names}
        reachable = [name for name in names if timeouts[name]]
        late = Unreachable(f"No complete answer within {self.seconds:g} s: check the cluster and the network.")
        if not reachable:
            return dict.fromkeys(names, late)
        threads, began = ThreadPoolExecutor(min(len(reachable), MAX_THREADS)), time.monotonic()
        try:
            requests = {name: threads.submit(self.call, name, work) for name in reachable}
            for name, request in requests.items():
                wait((request,), timeout=max(0.0, began + timeouts[name] - time.monotonic()))
                self._timeouts.note(name, request, time.monotonic() - began)
                answers[name] = request.result() if request.done() else late
            return {name: answers.get(name, late) for name in names}
        finally:
            # Not waited for: a request that hangs ends by its own time-out.
            threads.shutdown(wait=False, cancel_futures=True)

    def _connection(self, cluster: RegisteredCluster) -> Client:
        """The Secret of a cluster is read once in a reconcile, not for each question."""
        with self._connecting[cluster.name]:
            if cluster.name not in self._connected:
                self._connected[cluster.name] = self._clients.client(cluster)
            return self._connected[cluster.name]
