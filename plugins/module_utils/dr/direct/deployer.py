# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes objects to the API servers of the registered clusters, fenced by their stamps.

Each write is a compare-and-swap: on the absence of the object, or on the version whose stamp was compared. No request begins after the
deadline of the call or after the term: a leader that is no longer one must not write late. After a lost answer the caller repeats the call.

A field that the cluster's CRD does not have is refused: an older one would drop `dryRun`, and a test failover would be a failover.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...common.clock import boottime
from ...common.types import Object
from ...kube import errors
from ...kube.client import Kube
from ...kube.errors import Conflict, Invalid, NotFound
from ..interfaces import Deployed, ObjectRef, Outcome, Refused, Stamp
from ..stamps import merged, refusal, stamped
from .peers import Peers

PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Connection:
    """A connection that can be used until the deadline, and while the term lasts."""

    kube: Kube
    deadline: float
    acting: Callable[[], bool]

    def in_time(self) -> Kube:
        if not self.acting():
            raise errors.Unreachable(f"The term ended before the last request to {self.kube.target.server}, which was not sent.")
        if boottime() > self.deadline:
            raise errors.Unreachable(f"{self.kube.target.server} took too long, and nothing more was sent: repeat the step.")
        return self.kube


class DirectDeployer:
    """ResourceDeployer over the registry's clients."""

    def __init__(self, peers: Peers, acting: Callable[[], bool] = lambda: True) -> None:
        self._peers = peers
        self._acting = acting

    def during(self, acting: Callable[[], bool]) -> DirectDeployer:
        return DirectDeployer(self._peers, acting)

    def apply(self, cluster: str, item: Object, stamp: Stamp) -> Outcome:
        return self._write(cluster, lambda connection: _apply(connection, cluster, item, stamp))

    def delete(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> Outcome:
        return self._write(cluster, lambda connection: _delete(connection, ref, stamp))

    def delete_later(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> None:
        """Nothing here can remember it. The state has the cluster as a leftover, and the next leader deletes the object."""

    def _write(self, cluster: str, work: Callable[[Connection], Outcome]) -> Outcome:
        deadline = boottime() + self._peers.seconds

        def attempts(kube: Kube) -> Outcome:
            while True:
                try:
                    return work(Connection(kube, deadline, self._acting))
                except Conflict:
                    # The object has changed since its stamp was compared: compare the new one.
                    time.sleep(PAUSE_SECONDS)
                except Invalid as error:
                    return Refused(f"{error} Check the CRD of the cluster, and its admission policies.")

        return self._peers.call(cluster, attempts)


def _apply(connection: Connection, cluster: str, item: Object, stamp: Stamp) -> Outcome:
    wanted, metadata = stamped(item, cluster, stamp), item["metadata"]
    existing = connection.in_time().find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
    if existing is None:
        return _create(connection, wanted)
    if refused := refusal(existing, stamp):
        return refused
    if existing["metadata"].get("deletionTimestamp"):
        return Refused(f"{item['kind']} {metadata['name']} is being deleted: wait until {cluster} no longer has it.")
    new = merged(existing, wanted)
    if new == existing:
        return Deployed(changed=False)
    written = connection.in_time().replace(new, strict=True)
    # The same again for an object whose missing fields have defaults: the server changes nothing then.
    return Deployed(written["metadata"]["resourceVersion"] != existing["metadata"]["resourceVersion"])


def _create(connection: Connection, wanted: Object) -> Outcome:
    try:
        connection.in_time().create(wanted, strict=True)
    except NotFound:
        kube = connection.in_time()
        if not kube.serves(wanted["apiVersion"], wanted["kind"]):
            return Refused(f"{kube.target.server} does not serve {wanted['kind']} of {wanted['apiVersion']}: install its CRD.")
        # Only the namespace can be missing.
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted["metadata"]["namespace"]}}
        connection.in_time().create(namespace)
        connection.in_time().create(wanted, strict=True)
    return Deployed(changed=True)


def _delete(connection: Connection, ref: ObjectRef, stamp: Stamp) -> Outcome:
    existing = connection.in_time().find(ref.api_version, ref.kind, ref.name, ref.namespace or None)
    if existing is None:
        return Deployed(changed=False)
    if refused := refusal(existing, stamp):
        return refused
    if existing["metadata"].get("deletionTimestamp"):
        return Deployed(changed=False)
    return Deployed(connection.in_time().delete(existing, unchanged=True))
