"""Cluster API on the hub, as plain processes: its own core and kubeadm managers, and the in-memory provider of its tests.

Clusters created with it consist of real objects on the hub, validated by Cluster API's real webhooks. Their machines, Nodes and API
servers live in the memory of one process, and are lost with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http.client
from pathlib import Path
from typing import IO, Any

import yaml

from . import gobuild
from .capi_manifests import CLASS_NAME, cluster_class, led_to, of_in_memory
from .certificates import Authority
from .cluster import Cluster
from .crds import SafeLoader
from .processes import Process, ProcessDied, free_port, port_in_use, write_json, write_private
from .screen import UserError

CLASS_NAMESPACE = "capi-classes"
IN_MEMORY = "capi-in-memory"
GATES = "ClusterTopology=true,MachinePool=true"
READY_SECONDS = 180
PORT_TRIES = 3
# For the clusters' API servers: each sandbox has a range, below the ephemeral ports of the kernel.
FIRST_PORT, LAST_PORT, PORTS = 20000, 30000, 500


class ClusterApi:
    """The managers in `folder`, which holds their certificate and their logs."""

    def __init__(self, folder: Path, hub: Cluster, programs: dict[str, Path]) -> None:
        self.folder = folder
        self._hub = hub
        self._managers = [Manager(name, folder, binary, hub) for name, binary in programs.items()]

    @property
    def running(self) -> bool:
        return all(manager.running for manager in self._managers)

    async def start(self) -> None:
        """Start what isn't running, and return when all webhooks answer and the ClusterClass is reconciled."""
        self.folder.mkdir(exist_ok=True, mode=0o700)
        if not (self.folder / "tls.key").exists():
            self._write_certificate()
        missing = [manager for manager in self._managers if not manager.running]
        await asyncio.gather(*(manager.stop() for manager in missing))
        try:
            # All CRDs come first: each manager watches those of others too.
            await self._install(missing)
            await asyncio.gather(*(self._start(manager) for manager in missing))
        except BaseException:
            await asyncio.gather(*(manager.stop() for manager in missing))
            raise
        write_json(self.folder / "capi.json", {"name": "cluster-api", "processes": [each.describe() for each in self._managers]})
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLASS_NAMESPACE}}
        await self._hub.apply("cluster-class.json", [namespace, *cluster_class(CLASS_NAMESPACE)])
        # A cluster of a class that Cluster API has not reconciled yet fails at first.
        reconciled = ("--for=condition=VariablesReady", f"--timeout={READY_SECONDS}s")
        await self._hub.kubectl("wait", f"clusterclass/{CLASS_NAME}", f"--namespace={CLASS_NAMESPACE}", *reconciled)

    async def stop(self) -> None:
        await asyncio.gather(*(manager.stop() for manager in self._managers))

    async def _install(self, managers: list[Manager]) -> None:
        """Install their CRDs and webhooks on the hub, with the addresses of free ports."""
        authority = (self.folder / "ca.crt").read_bytes()
        manifests = [each for manager in managers for each in await manager.manifests(authority)]
        definitions = [each for each in manifests if each["kind"] == "CustomResourceDefinition"]
        await self._hub.install_crds("capi-crds.json", definitions)
        await self._hub.apply("capi-webhooks.json", [each for each in manifests if each["kind"] != "CustomResourceDefinition"])

    async def _start(self, manager: Manager) -> None:
        """Start it and return when its webhooks answer. If another program has bound a port meanwhile, try others."""
        for attempt in range(1, PORT_TRIES + 1):
            try:
                await manager.start()
                return
            except ProcessDied as death:
                if attempt == PORT_TRIES or "address already in use" not in str(death):
                    raise
                await self._install([manager])

    def _write_certificate(self) -> None:
        authority = Authority("sandbox-cluster-api")
        certificate, key = authority.server("cluster-api", ["127.0.0.1"])
        for name, content in {"ca.crt": authority.pem, "tls.crt": certificate, "tls.key": key}.items():
            write_private(self.folder / name, content)


class Manager:
    """One of the managers: its manifests, its ports, its process."""

    def __init__(self, name: str, folder: Path, binary: Path, hub: Cluster) -> None:
        self._name = name
        self._folder = folder
        self._binary = binary
        self._hub = hub
        self._ports: dict[str, int] = {}
        self._range: PortRange | None = None
        self._process: Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def describe(self) -> dict[str, Any]:
        return self._process.describe() if self._process else {}

    async def manifests(self, authority: bytes) -> list[dict[str, Any]]:
        """Its CRDs and webhooks, with the ports of its last start if they are free, else with others."""
        if not self._ports or any(port_in_use(port) for port in self._ports.values()):
            self._ports = {"webhook": free_port(), "health": free_port()}
            if self._name == IN_MEMORY:
                self._range = PortRange.claim()
                self._ports["first"] = self._range.first
        config, crds = self._binary.parent / "config" / self._name, f"{self._name}.yaml"
        await self._hub.kubectl("kustomize", str(config / "crd"), "--output", crds)
        objects = [*_read(self._hub.folder / crds), *_read(config / "webhook" / "manifests.yaml")]
        wanted = of_in_memory(objects) if self._name == IN_MEMORY else objects
        return led_to(wanted, self._name, f"https://127.0.0.1:{self._ports['webhook']}", authority)

    async def start(self) -> None:
        """Start it and return when its webhooks answer. Raises ProcessDied with the reason otherwise."""
        self._process = Process(self._name, self._command(), self._folder)
        await self._process.start()
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while not await asyncio.to_thread(self._ready):
            self._process.check()
            if asyncio.get_running_loop().time() > deadline:
                raise ProcessDied(f"{self._name} is not ready after {READY_SECONDS} s. {self._process.exit_report()}")
            await asyncio.sleep(0.2)

    async def stop(self) -> None:
        if self._process:
            await self._process.stop()
        self._process = None

    def _command(self) -> list[str | Path]:
        command: list[str | Path] = [
            self._binary,
            f"--kubeconfig={self._hub.kubeconfig}",
            f"--feature-gates={GATES}",
            f"--webhook-port={self._ports['webhook']}",
            f"--webhook-cert-dir={self._folder}",
            f"--health-addr=127.0.0.1:{self._ports['health']}",
        ]
        if self._name == IN_MEMORY:
            first = self._ports["first"]
            return [*command, f"--first-port={first}", f"--last-port={first + PORTS - 1}"]
        return [*command, "--leader-elect=false", "--diagnostics-address=0", "--insecure-diagnostics=true"]

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._ports["health"], timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()


class PortRange:
    """Ports that no other sandbox of this user has. A lock on a file of the cache claims them, until this object or its process ends."""

    def __init__(self, first: int, claim: IO[bytes]) -> None:
        self.first = first
        self._claim = claim

    @classmethod
    def claim(cls) -> PortRange:
        for first in range(FIRST_PORT, LAST_PORT, PORTS):
            # Free ports alone are not enough: the provider listens seconds later, and two sandboxes that start at once
            # choose the same.
            claim = open(gobuild.cache_folder() / f"ports-{first}.lock", "ab")  # noqa: SIM115 - it stays open
            with contextlib.suppress(BlockingIOError):  # another sandbox has it
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not port_in_use(first):
                    return cls(first, claim)
            claim.close()
        raise UserError(f"Every {PORTS}th port from {FIRST_PORT} to {LAST_PORT} is in use: end a sandbox that has Cluster API.")


def _read(file: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(file.read_text(encoding="utf-8"), Loader=SafeLoader))
