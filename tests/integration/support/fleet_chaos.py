"""A whole fleet whose parts a test kills: home and hub API servers, the home engine, the agents of two hubs, and the REST API."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.dev.fleet_home import CRDS
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, HUB
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_storage import IS_DEFAULT
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from .event_source import EventSource
from .fleet_agents import AgentSite, agent_installed
from .fleet_api import Facade, Site, site_on
from .kubeconfigs import create_token, with_user
from .manifests import MANIFESTS, manifest

HOME, HUB_CLUSTER = "home", "hub"
HUBS = ("east", "west")
CLUSTERS, NODES = 45, 120  # of each hub
API_SERVER = "kube-apiserver"


@dataclass
class ChaosFleet:
    """Home on one API server, and both hubs on another. All parts have the accounts of the shipped manifests."""

    sandbox: Sandbox
    folder: Path
    home: Access
    hub: Access
    api: Site
    facade: Facade
    sources: Mapping[str, EventSource] = field(default_factory=dict)

    def parts(self) -> dict[str, tuple[Callable[[], None], Callable[[], None]]]:
        """How each part is killed, and how it is started again."""
        found = {name: (source.kill, source.start) for name, source in self.sources.items()}
        found["facade"] = (self.facade.kill, self.facade.start)
        for name in (HOME, HUB_CLUSTER):
            found[f"API server of {name}"] = (lambda name=name: self._kill_api_server(name), self.sandbox.up)  # type: ignore[misc]
        return found

    def _kill_api_server(self, cluster: str) -> None:
        process = next(each for each in self.sandbox.status() if (each.owner, each.name) == (cluster, API_SERVER))
        os.kill(process.pid, signal.SIGKILL)

    def logs(self) -> str:
        files = [*(source.log for source in self.sources.values()), self.facade.log]
        return "; ".join(map(str, files))


@contextlib.contextmanager
def chaos_fleet(folder: Path) -> Iterator[ChaosFleet]:
    sandbox = Sandbox(folder / "sandbox")
    sandbox.up(clusters=(HOME,), status_only=True, attached=True)
    try:
        home, hub = Access(sandbox.kubeconfig(HOME)), Access(sandbox.kubeconfig())
        _prepare_home(home)
        _prepare_hub(hub)
        with site_on(home, folder) as api, agent_installed(hub):
            fleet = ChaosFleet(sandbox, folder, home, hub, api, api.start(cached={"token_seconds": 60, "access_seconds": 60}))
            fleet.sources = {
                "home engine": _home_engine(home, folder),
                **{f"agent of {name}": _agent(home, hub, folder, name) for name in HUBS},
            }
            for source in fleet.sources.values():
                source.start()
            try:
                until(lambda: all(_is_ready(home, name) for name in HUBS), f"both hubs are ready; the logs are {fleet.logs()}", 120)
                yield fleet
            finally:
                for source in fleet.sources.values():
                    source.kill()
    finally:
        sandbox.down()


def _prepare_home(home: Access) -> None:
    files = [argument for name in CRDS for argument in ("-f", str(COLLECTION_CRDS / f"{name}.yaml"))]
    home.kubectl("apply", "--server-side", *files)
    home.kubectl("wait", "--for=condition=Established", "--timeout=120s", *files)
    home.kubectl("apply", "-k", str(MANIFESTS))


def _prepare_hub(hub: Access) -> None:
    """A hub whose checks pass: with storage, and without classes of hosts."""
    default = {"name": "standard", "annotations": {IS_DEFAULT: "true"}}
    hub.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": default, "provisioner": "example.com/none"})
    settings = json.dumps({"data": {"classes": None}})
    hub.kubectl("patch", "configmap", CONFIG_MAP, "-n", SITE_NAMESPACE, "--type=merge", "-p", settings)


def _home_engine(home: Access, folder: Path) -> EventSource:
    account = manifest("fleet/service_account")["metadata"]
    kubeconfig = _write(folder / "engine.kubeconfig", with_user(home, token=create_token(home.kube, account["namespace"], account["name"])))
    arguments = {"kubeconfig": kubeconfig, "health": {"port": 0}, "sweep": 5}
    return EventSource("fleet_source", arguments, folder, "home-engine")


def _agent(home: Access, hub: Access, folder: Path, name: str) -> EventSource:
    site = AgentSite(home, hub, name)
    site.set_up()
    capacity = {"clusters": CLUSTERS, "nodes": {"fc430": NODES}}
    home.kube.create({"apiVersion": API_VERSION, "kind": HUB, "metadata": {"name": name}, "spec": {"capacity": capacity}}, strict=True)
    account = manifest("fleet_agent/service_account")["metadata"]
    on_hub = with_user(hub, token=create_token(hub.kube, account["namespace"], account["name"]))
    arguments = {
        "hub": name,
        "home": {"kubeconfig": str(site.kubeconfig_file(folder))},
        "kubeconfig": _write(folder / f"{name}-hub.kubeconfig", on_hub),
        "heartbeat": 2,
        "health": {"port": 0},
    }
    return EventSource("agent_source", arguments, folder, f"agent-{name}")


def _write(file: Path, content: Any) -> str:
    file.write_text(json.dumps(content), encoding="utf-8")
    return str(file)


def _is_ready(home: Access, name: str) -> bool:
    status: Object = home.kube.get(API_VERSION, HUB, name).get("status") or {}
    return any((each["type"], each["status"]) == ("Ready", "True") for each in status.get("conditions") or ())
