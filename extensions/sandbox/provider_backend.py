"""What the conformance tests know of a provider, and do to the system behind it: a `Backend` for each provider.

The factory creates the provider, as it does in a playbook. The provider reaches the hub through a proxy, by which the tests break any
request.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from ...plugins.module_utils.common.types import Object
from ...plugins.module_utils.kube.allowed_addresses import AllowedAddresses
from ...plugins.module_utils.kube.client import Kube
from ...plugins.module_utils.kube.config import Target
from ...plugins.module_utils.lock import lease
from ...plugins.module_utils.lock.fenced_writer import FencedWriter
from ...plugins.module_utils.providers.base import ClusterRef, Provider
from ...plugins.module_utils.providers.factory import ProviderFactory, checked
from ...plugins.module_utils.providers.model import ClusterRequest, ObservedCluster
from .access import Access, until
from .api_proxy import ApiProxy, Request
from .processes import free_port

TOKEN_ANNOTATION = "cloudkit.openshift.io/lock-token"  # noqa: S105 - the name of an annotation
ORDER_LABEL = "cloudkit.openshift.io/clusterorder"
NONE = ObservedCluster()


class Backend(ABC):
    """One provider, with what is behind it, in a namespace of its own."""

    TYPE: ClassVar[str]
    # The methods of the interface that the provider does not support.
    UNSUPPORTED: ClassVar[frozenset[str]] = frozenset()
    # An add-on that there is, where the provider has any.
    ADDON: ClassVar[str] = ""
    # How many seconds a cluster may take to be ready, or deleted.
    TIMEOUT_SECONDS: ClassVar[float] = 120

    def __init__(self, hub: Access, namespace: str, proxy: ApiProxy) -> None:
        self.namespace = namespace
        self.proxy = proxy
        # Not through the proxy: it works while requests there are broken, and is not counted.
        self.kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
        self._locks: dict[str, lease.Lock] = {}
        # What has to be done after the test, beside the namespace being deleted.
        self.undo = contextlib.ExitStack()

    # What each backend implements

    @abstractmethod
    def request(self) -> ClusterRequest:
        """A cluster that can be created."""

    @abstractmethod
    def changed_request(self) -> ClusterRequest:
        """The same with a change that `update` supports."""

    @abstractmethod
    def has_changed(self, name: str) -> bool:
        """Whether the change has reached the system behind the provider."""

    @abstractmethod
    def fail(self, name: str) -> str:
        """Make that cluster fail, and return words of the reason."""

    @abstractmethod
    def hold(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """Within the context the cluster is not deleted, however often its deletion is requested."""

    @abstractmethod
    def advance(self, name: str) -> None:
        """Let the system behind the provider do its next piece of work, unless it works by itself."""

    # The same for most backends: they are reached through the hub

    def unreachable(self) -> tuple[Provider, ClusterRequest]:
        """A provider that doesn't reach its backend, and what to ask it for."""
        return self.provider(kube=Kube(Target(f"http://127.0.0.1:{free_port()}"))), self.request()

    def refused(self) -> tuple[Provider, ClusterRequest]:
        """A provider whose credentials its backend does not accept, and what to ask it for."""
        stranger = replace(self.kube.target, token="wrong", certificate=b"", key=b"")  # noqa: S106 - it is of no account
        return self.provider(kube=Kube(stranger)), self.request()

    @contextlib.contextmanager
    def cut(self, at: int, after: bool = False) -> Iterator[list[Request]]:
        """From this request on nothing gets through; `after` means that it still did, and only its answer was lost.

        What was cut is in the list.
        """
        seen: list[Request] = []  # whole: the id of one that is gone may be that of a later one
        lost: list[Request] = []
        counting = threading.Lock()

        def lose(request: Request, if_cut: bool) -> None:
            if if_cut:
                lost.append(request)
                raise ConnectionResetError

        def shut(request: Request) -> None:
            with counting:
                seen.append(request)
                number = len(seen)
            lose(request, number > at or (number == at and not after))

        def swallow(request: Request) -> None:
            # One that came in before the cut gets no answer any more, either.
            lose(request, len(seen) >= at and any(request is each for each in seen))

        self.proxy.before = shut
        self.proxy.after = swallow
        try:
            yield lost
        finally:
            self.proxy.before = self.proxy.after = lambda _request: None

    def found(self, item: Object, name: str) -> Object | None:
        """An object of a resource set, as it is in the cluster of that name."""
        metadata = item["metadata"]
        kube = self.provider(name).connect(NONE)
        return kube.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))

    # What only backends of some providers implement

    def parts_of(self, identity_provider: str, name: str) -> list[str]:
        """All that there is of an identity provider of that cluster behind the provider; its name among them."""
        backend = type(self).__name__
        raise TypeError(f"{backend} has no parts_of to ask for {identity_provider} of {name}: write one, its provider has such things.")

    # The same for all backends

    def provider(self, name: str = "demo", *, check_mode: bool = False, kube: Kube | None = None) -> Provider:
        """The provider for a cluster of that name, with its lock taken; a new one for each call, as each task makes its own."""
        if name not in self._locks:
            self._locks[name] = lease.acquire(self.kube, self.namespace, name, "conformance", duration=3600)
        used = kube or Kube.connect({"kubeconfig": str(self.proxy.kubeconfig)})
        writer = FencedWriter(used, self._locks[name], TOKEN_ANNOTATION, check_mode)
        ref = ClusterRef(
            used,
            name,
            self.namespace,
            labels={ORDER_LABEL: name},
            writer=writer,
            check_mode=check_mode,
            allowed_addresses=AllowedAddresses.of(["127.0.0.0/8"]),  # every cluster of a test is on this machine
        )
        return ProviderFactory.for_cluster(self.TYPE, ref)

    def asked(self, request: ClusterRequest) -> ClusterRequest:
        """The request as a provider gets it: checked, with the defaults in it."""
        return checked(ProviderFactory.get(self.TYPE), request)

    def create(self, name: str = "demo") -> ObservedCluster:
        return self.provider(name).create(self.asked(self.request()))

    def ready(self, name: str = "demo") -> ObservedCluster:
        """The cluster once it is ready."""
        spec = self.create(name)

        def is_ready() -> bool:
            nonlocal spec
            self.advance(name)
            spec = self.provider(name).status(spec)
            assert spec.status != "failed", spec.status_details
            return spec.status == "ready"

        until(is_ready, f"the cluster {name} is ready", self.TIMEOUT_SECONDS)
        self.advance(name)
        return spec

    def deleted(self, name: str = "demo") -> None:
        """Delete the cluster, and assert that it is absent once `delete` returns true."""

        def is_deleted() -> bool:
            is_done = self.provider(name).delete(NONE)
            self.advance(name)
            return is_done

        until(is_deleted, f"the cluster {name} is deleted", self.TIMEOUT_SECONDS)
        assert self.provider(name).status(NONE).is_absent


def kubeconfig_for(server: str, **user: Any) -> Object:
    """A kubeconfig for that address, with these credentials."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
