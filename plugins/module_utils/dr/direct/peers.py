# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests to registered clusters, each with a total deadline. A cluster that hangs delays no other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from ...kube.client import Kube
from ...kube.errors import KubeError, Unexpected
from ...kube.untrusted import BadKubeconfig
from ...registry.clients import MAX_THREADS, ClusterClients, HubError
from ...registry.health import SecretNotFound
from ...registry.model import ClusterRegistry
from ..answers import Unauthorized, Unknown, Unreachable
from ..errors import answer_of

Result = TypeVar("Result")


class Peers:
    """The clusters of a registry. All requests for one answer of a cluster may take `seconds` together."""

    def __init__(self, registry: ClusterRegistry, clients: ClusterClients, seconds: float) -> None:
        self.registry = registry
        self.seconds = seconds
        self._clients = clients
        self._clusters = {cluster.name: cluster for cluster in registry.clusters}

    def call(self, name: str, work: Callable[[Kube], Result]) -> Result | Unknown:
        """Call `work` with the connection to a cluster. HubError if its Secret cannot be read."""
        cluster = self._clusters.get(name)
        if cluster is None:
            return Unauthorized(f"{self.registry} has no cluster {name}: register it, with a Secret for its kubeconfig.")
        try:
            return self._clients.call(cluster, work)
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

    def ask(self, names: Sequence[str], work: Callable[[Kube], Result]) -> dict[str, Result | Unknown]:
        """Call `work` for several clusters at once. A cluster that has not answered at the deadline is Unreachable."""
        if not names:
            return {}
        threads = ThreadPoolExecutor(min(len(names), MAX_THREADS))
        try:
            answers = {name: threads.submit(self.call, name, work) for name in names}
            wait(answers.values(), timeout=self.seconds)
            late = Unreachable(f"No complete answer within {self.seconds:g} s: check the cluster and the network.")
            return {name: answer.result() if answer.done() else late for name, answer in answers.items()}
        finally:
            # Not waited for: a request that hangs ends by its own time-out.
            threads.shutdown(wait=False, cancel_futures=True)
