# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The interface of every way to get a cluster. A call starts work or observes it, and returns; none waits for a cluster.

A provider serves one cluster, named by a reference. It finds the cluster by its name and by what `ObservedCluster.to_stored` recorded
earlier, and works without the latter too: a run may have been killed before anything was recorded. Everything that it writes on the hub
goes through the writer of the reference, so that only the holder of the cluster's lock writes. It adds what it changed, or in check mode
would change, to `changes`.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from ..common.types import Object
from ..kube.allowed_addresses import AllowedAddresses
from ..kube.client import Kube
from ..kube.connections import Limits
from ..kube.errors import KubeError
from ..kube.untrusted import target_of
from ..lock.fenced_writer import Change, FencedWriter
from .model import Addon, ClusterRequest, IdentityProvider, Kubeconfig, NodeSet, ObservedCluster, Region, ResourceSet

# Of a connection to a cluster, which its tenant administers: one that sends bytes indefinitely ends a task, and not the
# whole run.
CLUSTER_LIMITS = Limits(response_bytes=2**26, total_bytes=2**28, total_seconds=600.0)


class ProviderError(KubeError):
    """An error of a provider, not of the hub. It is of the same family as the hub's errors, so that one handler reports both."""


class NotSupported(ProviderError):
    """The provider never supports this."""

    def __init__(self, provider: str, what: str) -> None:
        super().__init__(f"The provider {provider} does not support {what}.")
        self.provider = provider
        self.what = what


class BrokenProvider(ProviderError):
    """A bug of the provider. It fails the clusters of that provider, and no others in the same run."""

    def __init__(self, provider: str, call: str, fault: Exception) -> None:
        # The line, not the message of the exception: that may contain a secret.
        line = fault if isinstance(fault, SyntaxError) else traceback.extract_tb(fault.__traceback__)[-1]
        super().__init__(
            f"The provider {provider} has a bug: {type(fault).__name__} in {call}, at line {line.lineno} of "
            f"{Path(line.filename or '').name}. Report it to the provider's author."
        )


class NoSuchCluster(ProviderError):
    """The call needs a cluster, and there is none."""


class NotReadyYet(ProviderError):
    """The cluster is not ready for the call; the same call works later."""

    retryable = True


@dataclass(frozen=True)
class ClusterRef:
    """A cluster on the hub: its name, the namespace of its objects and secrets, and the labels of these.

    Without a `writer` a provider can only observe. `class_label` is the label with a node set's resource class. A provider connects to an
    address that a tenant gave only if it is one of `allowed_addresses`.
    """

    kube: Kube
    name: str
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    class_label: str = "openfleet.clusters/resource-class"
    writer: FencedWriter | None = None
    check_mode: bool = False
    allowed_addresses: AllowedAddresses = field(default_factory=AllowedAddresses)


class Provider(ABC):
    """One cluster. What a provider cannot do is NotSupported, never a silent success."""

    TYPE: ClassVar[str]
    # What `ClusterRequest.settings` and `.secrets` may hold, declared as in an argument spec.
    SETTINGS: ClassVar[Mapping[str, Any]] = {}
    SECRETS: ClassVar[Mapping[str, Any]] = {}
    # The settings that are address ranges of the cluster. They are compared before anything is created.
    NETWORKS: ClassVar[tuple[str, ...]] = ()
    # Kinds on the hub, as (apiVersion, kind), that are all `observe_objects` needs. Empty where a cluster is observed
    # elsewhere.
    WATCHES: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init_subclass__(cls) -> None:
        """Turn every exception of a provider's calls that is no error of this family into one."""
        calls = {name for name, value in vars(Provider).items() if inspect.isfunction(value) and not name.startswith("_")}
        for name in calls.intersection(vars(cls)):
            setattr(cls, name, _contain_bugs(name, getattr(cls, name)))

    def __init__(self, ref: ClusterRef) -> None:
        self.ref = ref
        self.changes: list[Change] = []

    def use_credentials_of(self, request: ClusterRequest) -> None:  # noqa: B027 - most have nothing to do here
        """Use the credentials of this request from now on: recorded ones may be invalid."""

    # Every provider supports these

    @abstractmethod
    def create(self, request: ClusterRequest) -> ObservedCluster:
        """Request the cluster. One that exists is returned unchanged."""

    @abstractmethod
    def update(self, observed: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        """Change an existing cluster to what the request says."""

    @abstractmethod
    def delete(self, observed: ObservedCluster) -> bool:
        """Delete the cluster; False while something of it is left, True once nothing is, also if it never existed."""

    @abstractmethod
    def status(self, observed: ObservedCluster) -> ObservedCluster:
        """The cluster as it is now; absent where there is none."""

    def observe_inside(self, observed: ObservedCluster) -> ObservedCluster:
        """The cluster with what only it itself reports, for a provider whose `status` asks only the hub. Called at the end of a run."""
        return observed

    # Not every provider supports these

    def observe_objects(self, observed: ObservedCluster, items: Sequence[Object]) -> ObservedCluster:
        """The cluster as the objects of the kinds in `WATCHES` in its namespace show it; sends no request."""
        self._unsupported("watches on the hub")

    def kubeconfig(self, observed: ObservedCluster) -> Kubeconfig:
        self._unsupported("kubeconfigs")

    def dns(self, observed: ObservedCluster) -> str:
        """The domain of the cluster's applications."""
        self._unsupported("DNS names of clusters")

    def cloud_providers(self) -> list[str]:
        self._unsupported("cloud providers")

    def regions(self, cloud_provider: str) -> list[Region]:
        self._unsupported("regions")

    def add_identity_provider(self, observed: ObservedCluster, identity_provider: IdentityProvider) -> None:
        """Add an identity provider for logins, beside the existing ones. One of the same name is changed."""
        self._unsupported("identity providers")

    def remove_identity_provider(self, observed: ObservedCluster, name: str) -> None:
        self._unsupported("identity providers")

    def apply_resources(self, observed: ObservedCluster, resource_set: ResourceSet) -> None:
        """Apply the objects of the set in the cluster, and delete those that the set had before and has no longer."""
        self._unsupported("resources in a cluster")

    def remove_resources(self, observed: ObservedCluster, name: str) -> bool:
        """Delete the whole set; True once nothing of it is left."""
        self._unsupported("resources in a cluster")

    def node_sets(self, observed: ObservedCluster) -> tuple[NodeSet, ...]:
        return self.status(observed).node_sets

    def scale(self, observed: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        """Set the number of nodes of a class: a new class is added, one without nodes is removed."""
        self._unsupported("a change of the number of nodes")

    def install_addon(self, observed: ObservedCluster, addon: Addon) -> bool:
        """Install the add-on; True once it is ready."""
        self._unsupported("add-ons")

    # For authors of providers

    def connect(self, observed: ObservedCluster, limits: Limits = CLUSTER_LIMITS) -> Kube:
        """A connection to the cluster itself."""
        return Kube(target_of(self.kubeconfig(observed).content, foreign=False), limits=limits)

    @property
    def writer(self) -> FencedWriter:
        if self.ref.writer is None:
            raise ProviderError(f"The provider {self.TYPE} observes {self.ref.name} without its lock, and cannot change it.")
        return self.ref.writer

    def _unsupported(self, what: str) -> NoReturn:
        raise NotSupported(self.TYPE, what)


def _contain_bugs(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(provider: Provider, *arguments: Any, **named: Any) -> Any:
        try:
            return method(provider, *arguments, **named)
        except KubeError:
            raise
        except Exception as fault:
            raise BrokenProvider(provider.TYPE, name, fault) from fault

    return call
