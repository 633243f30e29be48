"""Flux's controllers as processes, in the place of the pods of their Deployments."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.work_queue import Key
from .. import gobuild
from ..processes import Process, free_port, write_json
from .workload_status import images

log = logging.getLogger("workloads-standin")

# The flags of a container that its process gets. All others are addresses, paths and permissions of a pod.
KEPT_FLAGS = (
    "--concurrent",
    "--default-service-account",
    "--feature-gates",
    "--log-level",
    "--no-cross-namespace-refs",
    "--rate-limit-interval",
    "--requeue-dependency",
)
NOTIFICATION, SOURCE = "notification-controller", "source-controller"
CHECK_SECONDS = 0.5
FIRST_RESTART_SECONDS, LAST_RESTART_SECONDS = 0.5, 10.0


@dataclass(frozen=True)
class Wanted:
    """What a Deployment asks for: one of Flux's controllers, with the flags of its container."""

    program: str
    image: str
    namespace: str
    flags: tuple[str, ...]
    events: bool

    @classmethod
    def of(cls, deployment: Object) -> Wanted | None:
        """None for other images, and for no replicas."""
        containers = deployment["spec"]["template"]["spec"]["containers"]
        for container, image in zip(containers, images(deployment), strict=True):
            program = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
            if program in gobuild.FLUX_CONTROLLERS and deployment["spec"]["replicas"]:
                flags = container.get("args", [])
                kept = tuple(flag for flag in flags if flag.partition("=")[0] in KEPT_FLAGS)
                events = any(flag.startswith("--events-addr=") for flag in flags)
                return cls(program, image, deployment["metadata"]["namespace"], kept, events)
        return None


class FluxControllers:
    """The controllers of one cluster by the key of their Deployments. `changed` gets the key of one that becomes ready, or ends."""

    def __init__(self, name: str, kubeconfig: Path, folder: Path, changed: Callable[[Key], None]) -> None:
        self._name = name
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._changed = changed
        self._running: dict[Key, FluxController] = {}
        self._events_port = 0

    async def ensure(self, key: Key, deployment: Object | None) -> str:
        """Start, replace or end the controller of a Deployment. Returns what its availability waits for; empty for nothing."""
        wanted = Wanted.of(deployment) if deployment and "deletionTimestamp" not in deployment["metadata"] else None
        running = self._running.get(key)
        if running and running.wanted != wanted:
            await self._running.pop(key).stop()
            self.describe()
        if wanted is None:
            return ""
        if key not in self._running:
            programs = gobuild.built(gobuild.FLUX)
            if programs is None:
                return "Flux is not compiled: run `openfleet-sandbox build --flux`"
            self._events_port = self._events_port or free_port()
            folder = self._folder / f"{key.namespace}-{key.name}"
            started = FluxController(
                wanted, programs[wanted.program], self._kubeconfig, folder, self._events_port, lambda: self._on_change(key)
            )
            self._running[key] = started
            started.start()
        return "" if self._running[key].ready else f"{wanted.program} is starting"

    async def stop_all(self) -> None:
        """End them at once, as a cluster ends: none has time to finish its work."""
        running, self._running = self._running, {}
        await asyncio.gather(*(controller.stop(signal.SIGKILL) for controller in running.values()))

    def describe(self) -> None:
        """Write the processes to a file, for the status of the sandbox."""
        processes = [controller.process.describe() for controller in self._running.values() if controller.process]
        write_json(self._folder / "flux.json", {"name": f"{self._name} (Flux)", "processes": processes})

    def _on_change(self, key: Key) -> None:
        self.describe()
        self._changed(key)


class FluxController:
    """One controller, started again whenever it ends."""

    def __init__(self, wanted: Wanted, binary: Path, kubeconfig: Path, folder: Path, events_port: int, changed: Callable[[], None]) -> None:
        self.wanted = wanted
        self.ready = False
        self.process: Process | None = None
        self._binary = binary
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._events_port = events_port
        self._health_port, self._storage_port, self._receiver_port = free_port(), free_port(), free_port()
        self._changed = changed
        self._keeping: asyncio.Task[None] | None = None
        self._end = signal.SIGTERM

    def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self._end = how
        if self._keeping:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self) -> None:
        """Run it until cancelled. After each end it waits a little longer, as a kubelet does."""
        wait = FIRST_RESTART_SECONDS
        while True:
            await self._run()
            await asyncio.sleep(wait)
            wait = min(wait * 2, LAST_RESTART_SECONDS)

    async def _run(self) -> None:
        """Run it once, until it ends."""
        temporary = self._folder / "tmp"
        temporary.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = {
            "KUBECONFIG": str(self._kubeconfig),
            "RUNTIME_NAMESPACE": self.wanted.namespace,
            "HOME": str(self._folder),
            "TMPDIR": str(temporary),
        }
        self.process = Process(self.wanted.program, [self._binary, *self._flags()], self._folder, environment)
        try:
            await self.process.start()
            self._changed()
            while self.process.running:
                ready = await asyncio.to_thread(self._answers)
                if ready != self.ready:
                    self.ready = ready
                    self._changed()
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            self.ready = False
            await self.process.stop(self._end)
        log.warning("%s has ended and starts again", self.wanted.program)
        self._changed()

    def _flags(self) -> list[str]:
        flags = [*self.wanted.flags, "--enable-leader-election=false", "--metrics-addr=0", f"--health-addr=127.0.0.1:{self._health_port}"]
        if self.wanted.program == NOTIFICATION:
            return [*flags, f"--events-addr=127.0.0.1:{self._events_port}", f"--receiverAddr=127.0.0.1:{self._receiver_port}"]
        if self.wanted.events:
            flags.append(f"--events-addr=http://127.0.0.1:{self._events_port}/")
        if self.wanted.program == SOURCE:
            address = f"127.0.0.1:{self._storage_port}"
            (self._folder / "storage").mkdir(exist_ok=True)
            flags += [f"--storage-path={self._folder / 'storage'}", f"--storage-addr={address}", f"--storage-adv-addr={address}"]
        return flags

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._health_port, timeout=5)
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False
