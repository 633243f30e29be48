# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The interface of every way to get a cluster. A call starts work or looks at it, and returns; none waits for a cluster.

A provider serves one cluster, at one place on the hub. It finds it by its name and by what `ClusterSpec.to_stored` kept of an earlier look,
and works without the latter too: a run may have been killed before anything was kept. Everything that it writes on the hub goes through the
place's writer, so that only the holder of the cluster's lock writes. What it changed it puts into `changes`, also what it only would
change in check mode.
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
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..kube.untrusted import target_of
from ..lock.fenced_writer import Change, FencedWriter
from .model import Addon, ClusterRequest, IdentityProvider, Kubeconfig, NodeSet, ObservedCluster, Region, ResourceSet


class ProviderError(KubeError):
    """What a provider, and not the hub, has to say. Of the same family as the hub's errors, so that one place reports both."""


class NotSupported(ProviderError):
    """This provider has no such thing, ever."""

    def __init__(self, provider: str, what: str) -> None:
        super().__init__(f"The provider {provider} does not support {what}.")
        self.provider = provider
        self.what = what


class BrokenProvider(ProviderError):
    """The provider has a fault of its own. That is the trouble of its clusters, and of no others in the same run."""

    def __init__(self, provider: str, call: str, fault: Exception) -> None:
        # Where it happened, and not what it said: that may be the value of a secret.
        place = fault if isinstance(fault, SyntaxError) else traceback.extract_tb(fault.__traceback__)[-1]
        super().__init__(
            f"The provider {provider} has a fault of its own: {type(fault).__name__} in {call}, at line {place.lineno} of "
            f"{Path(place.filename or '').name}. Its author can mend it."
        )


class NoSuchCluster(ProviderError):
    """What was asked of a cluster needs it to be there, and it is not."""


class NotReadyYet(ProviderError):
    """It is too early for that; the same call works later."""

    retryable = True


@dataclass(frozen=True)
class ClusterRef:
    """Where on the hub a cluster lives: its name, the namespace of its objects and secrets, and the labels that these carry.

    Without a `writer` a provider can only look. `class_label` is the label that tells a node set's resource class.
    """

    kube: Kube
    name: str
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    class_label: str = "openfleet.clusters/resource-class"
    writer: FencedWriter | None = None
    check_mode: bool = False


class Provider(ABC):
    """One cluster of one kind. What a provider cannot do is NotSupported, never a silent success."""

    TYPE: ClassVar[str]
    # What `ClusterRequest.settings` and `.secrets` may hold, declared as in an argument spec.
    SETTINGS: ClassVar[Mapping[str, Any]] = {}
    SECRETS: ClassVar[Mapping[str, Any]] = {}
    # Kinds on the hub, as (apiVersion, kind), from which alone `seen` tells how a cluster is. Empty where one has to ask elsewhere.
    WATCHES: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init_subclass__(cls) -> None:
        """Whatever a provider raises that is no error of this family comes out of each of its calls as one."""
        calls = {name for name, value in vars(Provider).items() if inspect.isfunction(value) and not name.startswith("_")}
        for name in calls.intersection(vars(cls)):
            setattr(cls, name, _contained(name, getattr(cls, name)))

    def __init__(self, ref: ClusterRef) -> None:
        self.ref = ref
        self.changes: list[Change] = []

    def use_credentials_of(self, request: ClusterRequest) -> None:  # noqa: B027 - most have nothing to do here
        """Reach whoever makes the cluster as this request says from now on: what was kept for that may have become invalid."""

    # Every provider can do these

    @abstractmethod
    def create(self, request: ClusterRequest) -> ObservedCluster:
        """Ask for the cluster. Where it is there already it is found, and left as it is."""

    @abstractmethod
    def update(self, spec: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        """Bring a cluster that is there to what is asked for now."""

    @abstractmethod
    def delete(self, spec: ObservedCluster) -> bool:
        """Take the cluster away; False while something of it is left, True once nothing is, also if there never was anything."""

    @abstractmethod
    def status(self, spec: ObservedCluster) -> ObservedCluster:
        """The cluster as it is now; absent where there is none."""

    # What follows not every provider can

    def observe_objects(self, spec: ObservedCluster, items: Sequence[Object]) -> ObservedCluster:
        """The cluster as objects of the kinds in `WATCHES` show it, all those of the place's namespace; nothing is asked for."""
        self._cannot("to be watched on the hub")

    def kubeconfig(self, spec: ObservedCluster) -> Kubeconfig:
        self._cannot("kubeconfigs")

    def dns(self, spec: ObservedCluster) -> str:
        """The domain that the cluster's applications are below."""
        self._cannot("DNS names of clusters")

    def cloud_providers(self) -> list[str]:
        self._cannot("cloud providers")

    def regions(self, cloud_provider: str) -> list[Region]:
        self._cannot("regions")

    def add_identity_provider(self, spec: ObservedCluster, identity_provider: IdentityProvider) -> None:
        """Let people log in with it, beside those that are there. One of the same name is brought to what is given."""
        self._cannot("identity providers")

    def remove_identity_provider(self, spec: ObservedCluster, name: str) -> None:
        self._cannot("identity providers")

    def apply_resources(self, spec: ObservedCluster, resource_set: ResourceSet) -> None:
        """Bring the objects of the set into the cluster, and take away what the set had before and has no longer."""
        self._cannot("resources in a cluster")

    def remove_resources(self, spec: ObservedCluster, name: str) -> bool:
        """Take the whole set away; True once nothing of it is left."""
        self._cannot("resources in a cluster")

    def node_sets(self, spec: ObservedCluster) -> tuple[NodeSet, ...]:
        return self.status(spec).node_sets

    def scale(self, spec: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        """Have so many nodes of that class: a new class is added, and with no nodes it is taken away."""
        self._cannot("a change of the number of nodes")

    def install_addon(self, spec: ObservedCluster, addon: Addon) -> bool:
        """Have the add-on installed; True once it is ready."""
        self._cannot("add-ons")

    # For those who write one

    def connect(self, spec: ObservedCluster) -> Kube:
        """A connection to the cluster itself."""
        return Kube(target_of(self.kubeconfig(spec).content))

    @property
    def writer(self) -> FencedWriter:
        if self.ref.writer is None:
            raise ProviderError(f"{self.TYPE} was only asked to look at {self.ref.name}, and cannot change it.")
        return self.ref.writer

    def _cannot(self, what: str) -> NoReturn:
        raise NotSupported(self.TYPE, what)


def _contained(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(provider: Provider, *arguments: Any, **named: Any) -> Any:
        try:
            return method(provider, *arguments, **named)
        except KubeError:
            raise
        except Exception as fault:
            raise BrokenProvider(provider.TYPE, name, fault) from fault

    return call
