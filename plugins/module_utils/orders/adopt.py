# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The adoption of a cluster by an order that was restored from a backup: the order has a new uid, its cluster the labels of the old one.

Only a person decides this. A run never does: the order may be a new one that only has the name of an earlier order.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..common.types import Object
from ..infrastructure.address_pools import AddressPools
from ..infrastructure.agent_hosts import AgentLabels
from ..infrastructure.claim_transfer import ClaimTransfer
from ..infrastructure.cluster_owner import ClusterOwner
from ..kube.errors import KubeError, NotFound
from ..lock.fenced_writer import Change, FencedWriter
from ..lock.lease import DURATION, Lock, above_all_earlier, acquire, predict, read, release
from ..providers.base import ProviderError
from ..providers.factory import ProviderFactory
from .model import ClusterOrder
from .ownership import NamespaceTaken, former_uids
from .run import Run


class NothingToAdopt(KubeError):
    """The order cannot adopt a cluster."""


def adopt(run: Run, namespace: str, name: str, holder: str) -> list[Change]:
    """Label the working namespace of the order and the objects in it with the order's uid, under the order's lock.

    The hosts and addresses of the cluster become the order's, too, and its DNS records with the next run.
    """
    order = run.find(namespace, name)
    if order is None:
        raise NothingToAdopt(f"There is no ClusterOrder {namespace}/{name}: restore it first.")
    before = above_all_earlier(read(run.kube, namespace, name, site=run.names.site_namespace), run.kube.server_time())
    if run.check_mode:
        return _label(run, order, predict(before, holder, DURATION, run.kube.server_time()))
    lock = acquire(run.kube, namespace, name, holder, observed=before, site=before.site)
    try:
        return _label(run, order, lock)
    finally:
        release(run.kube, lock)


def _label(run: Run, order: ClusterOrder, lock: Lock) -> list[Change]:
    working = run.kube.find("v1", "Namespace", order.working_namespace)
    if working is None:
        raise NothingToAdopt(
            f"The namespace {order.working_namespace} of ClusterOrder {order.namespace}/{order.name} does not exist: restore it, or run "
            "create_cluster, which creates a new cluster."
        )
    names = order.names
    wanted = {key: value for key, value in order.labels.items() if key != names.order_uid_label}
    if not wanted.items() <= (working["metadata"].get("labels") or {}).items():
        raise NamespaceTaken(f"The namespace {order.working_namespace} was not created for ClusterOrder {order.namespace}/{order.name}.")
    writer = FencedWriter(run.kube, lock, names.lock_token_annotation, run.check_mode)
    uid: Object = {"metadata": {"labels": {names.order_uid_label: order.uid}}}
    # A sweep may have found the cluster without its order; a later grace time must not count from then.
    annotations: dict[str, str | None] = {names.orphaned_annotation: None}
    changes = [writer.patch(item, lambda _present: uid) for item in _objects(run, order)]
    former = (working["metadata"].get("labels") or {}).get(names.order_uid_label)
    if former and former != order.uid:
        changes += _transfer(run, order, former, writer)
        # Only the template knows the domain of the cluster. Its next run finds here whose DNS records are the order's
        # now.
        annotations[names.former_uids_annotation] = ",".join(dict.fromkeys([*former_uids(working, names), former]))
    adopted: Object = {"metadata": {**uid["metadata"], "annotations": annotations}}
    # The namespace is last: until then nothing else works on the cluster, and an adoption that was killed is run again.
    return [*changes, writer.patch(working, lambda _present: adopted)]


def _transfer(run: Run, order: ClusterOrder, former: str, writer: FencedWriter) -> list[Change]:
    """Give the order what the site has recorded for the uid that the order had before."""
    names, site = order.names, order.names.site_namespace
    owner = ClusterOwner(order.namespace, order.name, order.uid, names.group)
    hosts = ClaimTransfer(run.kube, site, former, owner, AgentLabels(names.group), order.labels, writer, run.check_mode)
    pools = AddressPools(run.kube, site, writer, run.check_mode)
    return [*hosts.run(), *pools.transfer(former, owner)]


def _objects(run: Run, order: ClusterOrder) -> Iterator[Object]:
    """The objects that are found by their labels: the Secrets of the order, and what its provider watches."""
    selector = f"{order.names.order_label}={order.labels[order.names.order_label]}"
    try:
        kinds = ProviderFactory.get(run.provider_of(order)).WATCHES
    except ProviderError:
        kinds = ()
    for api_version, kind in (("v1", "Secret"), *kinds):
        try:
            yield from run.kube.list_all(api_version, kind, order.working_namespace, selector)
        except NotFound:  # the hub lacks the kind
            continue
