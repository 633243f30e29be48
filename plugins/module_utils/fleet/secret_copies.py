# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Copies the Secrets that a cluster refers to into the namespace of its hub, as `cluster_secrets` describes.

Versions and sizes are observed. Values are read when a copy is written, and are not kept. No message has a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Forbidden, KubeError, NotFound
from .cluster_secrets import Reference, SecretsRefused, copy_of, references
from .kinds import hub_namespace
from .model import FleetCluster


class SecretName(NamedTuple):
    """A Secret of a tenant."""

    namespace: str
    name: str


class SecretsChanged(KubeError):
    """The Secrets of a cluster cannot be copied any more. The next reconcile says why on the cluster."""


@dataclass(frozen=True)
class ObservedSecret:
    """A Secret without its values: its version, and how long the value of each key is. `problem` is why it cannot be read."""

    version: str = ""
    lengths: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def from_object(cls, item: Object) -> ObservedSecret:
        metadata = item["metadata"]
        lengths = {key: len(value) for key, value in (item.get("data") or {}).items()}
        return cls(f"{metadata['uid']}/{metadata['resourceVersion']}", lengths)


Secrets = Mapping[SecretName, ObservedSecret]


def has_references(cluster: FleetCluster) -> bool:
    return bool(_references(cluster))


def names_of(cluster: FleetCluster) -> set[SecretName]:
    """The Secrets that the cluster refers to."""
    return {SecretName(cluster.namespace, each.name) for each in _references(cluster)}


def observe_secrets(home: Kube, names: Iterable[SecretName]) -> dict[SecretName, ObservedSecret]:
    """Read these Secrets. One that cannot be read is a problem of the clusters that refer to it; one that does not exist is left out."""
    wanted = sorted(set(names))

    def read(name: SecretName) -> ObservedSecret | None:
        try:
            return ObservedSecret.from_object(home.get("v1", "Secret", name.name, name.namespace))
        except NotFound:
            return None
        except Forbidden:
            return ObservedSecret(
                problem=f"The fleet may not read the Secret {name.name}: "
                f"the operator has to bind openfleet-fleet-secrets in the namespace {name.namespace}."
            )
        except KubeError as error:
            return ObservedSecret(problem=f"The Secret {name.name} cannot be read: {error}")

    found = zip(wanted, home.in_parallel(read, wanted), strict=True)
    return {name: each for name, each in found if isinstance(each, ObservedSecret)}


def problem_of(cluster: FleetCluster, secrets: Secrets) -> str:
    """Why the Secrets of the cluster cannot be copied; empty if they can."""
    for name in sorted(names_of(cluster)):
        if name in secrets and secrets[name].problem:
            return secrets[name].problem
    try:
        wanted = references(cluster.raw["spec"].get("templateParameters") or {})
        copy_of("", cluster.uid, wanted, lambda name: _known(secrets.get(SecretName(cluster.namespace, name))))
    except SecretsRefused as refused:
        return str(refused)
    return ""


def version_of(cluster: FleetCluster, secrets: Secrets) -> str:
    """Which values the copy has; empty without references. It is derived from versions, never from values."""
    wanted = _references(cluster)
    if not wanted:
        return ""
    versions = [f"{each.data_key}={secrets[SecretName(cluster.namespace, each.name)].version}" for each in wanted]
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()[:32]


class SecretCopies:
    """The copies on one home cluster, one for each cluster that needs it: named by its uid, in the namespace of its hub."""

    def __init__(self, home: Kube) -> None:
        self._home = home

    def write(self, cluster: FleetCluster, hub: str) -> str:
        """Write the copy as the Secrets are now, and return its version."""
        found = {each.name: self._home.find("v1", "Secret", each.name, cluster.namespace) for each in sorted(names_of(cluster))}
        observed = {SecretName(cluster.namespace, name): ObservedSecret.from_object(item) for name, item in found.items() if item}
        try:
            copied = copy_of(hub, cluster.uid, _references(cluster), found.get)
        except SecretsRefused as refused:
            raise SecretsChanged(str(refused)) from refused
        self._home.apply(copied, force=True)
        return version_of(cluster, observed)

    def delete(self, uid: str, hub: str) -> None:
        self._home.delete({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": uid, "namespace": hub_namespace(hub)}})


def _references(cluster: FleetCluster) -> tuple[Reference, ...]:
    try:
        return references(cluster.raw["spec"].get("templateParameters") or {})
    except SecretsRefused:  # too many: a problem of the cluster, for which nothing is read
        return ()


def _known(observed: ObservedSecret | None) -> Object | None:
    """Stands for the Secret where only the lengths of its values count."""
    return {"data": {key: range(length) for key, length in observed.lengths.items()}} if observed else None
