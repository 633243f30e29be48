"""A fleet on this machine, for `make demo-fleet`: a home cluster, two hubs with their rules engines, and the REST API of the fleet."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ...plugins.module_utils.common.types import Object
from ...plugins.module_utils.fleet.hub_preparation import CREDENTIAL, KEY
from ...plugins.module_utils.fleet.kinds import API_VERSION, HUB
from ...plugins.module_utils.infrastructure.agent_hosts import API_VERSION as AGENTS
from ...plugins.module_utils.infrastructure.agent_hosts import KIND as AGENT
from ...plugins.module_utils.infrastructure.agent_hosts import AgentLabels
from ...plugins.module_utils.infrastructure.cluster_storage import IS_DEFAULT
from ...plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ...plugins.module_utils.lock.lease import SITE_NAMESPACE
from ...plugins.module_utils.orders.model import Names
from ..sandbox.access import Access, until
from ..sandbox.processes import free_port, write_json, write_private
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import UserError, stage
from .demo_process import DemoProcess
from .fleet_home import API, ENGINE, FleetApi, FleetHome, page
from .rules_engine import PROGRAMS, ROOT, RulesEngine, end_in_order, engine_arguments, engine_environment

HOME, EAST, WEST = "home", "east", "west"
RULEBOOKS = ROOT / "rulebooks"
CLASS, HOSTS, INVENTORY = "fc430", 4, "hosts"
HUB_TIMEOUT = 25
WAIT_SECONDS = 300
Result = TypeVar("Result")


class Site:
    """A cluster of the fleet: home or a hub, with its rules engine."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        # A folder of its own for each: a sandbox locks the folder above its state while it starts.
        self.sandbox = Sandbox(folder / name / "sandbox")
        self.engine = RulesEngine(folder / name / "engine")

    @property
    def access(self) -> Access:
        return Access(self.sandbox.kubeconfig(HOME) if self.name == HOME else self.sandbox.kubeconfig())

    def kill(self) -> None:
        """End everything of the site as its loss does: nothing is released, no goodbye is sent."""
        pids = [process.pid for process in self.sandbox.status()]
        for pid in (*pids, self.sandbox.holder()):
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.engine.kill()


class FleetSites:
    """Home, the hubs and the REST API."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.east, self.west = self.sites = tuple(Site(name, folder) for name in (HOME, EAST, WEST))
        self.api = FleetApi(folder / "api")

    @cached_property
    def at_home(self) -> FleetHome:
        return FleetHome(self.home.access, self.folder)

    @property
    def are_running(self) -> bool:
        return any(site.sandbox.holder() is not None for site in self.sites)

    def start(self) -> None:
        """Start the clusters side by side: each while the one before it starts."""

        def start_home(_kubeconfig: Path) -> None:
            self.home.sandbox.up(clusters=(HOME,), hub=False, attached=True)

        self.east.sandbox.up(attached=True, meanwhile=lambda _file: self.west.sandbox.up(attached=True, meanwhile=start_home))

    def end(self) -> None:
        for site in self.sites:
            site.sandbox.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare_hub(self, hub: Site) -> None:
        """Give a hub hosts and storage, and let it join the fleet by the playbook, as an operator does."""
        hub.access.apply(*_infrastructure())
        classes = {"agent_namespace": INVENTORY, "classes": yaml.safe_dump({CLASS: {"kind": "agent"}})}
        hub.access.kubectl("patch", "configmap", CONFIG_MAP, "-n", SITE_NAMESPACE, "--type=merge", "-p", json.dumps({"data": classes}))
        variables = {
            "fleet_hub": hub.name,
            "fleet_hub_capacity": {"clusters": 10, "nodes": {CLASS: HOSTS}},
            "home_kubeconfig": str(self.home.access.kubeconfig),
            "hub_kubeconfig": str(hub.access.kubeconfig),
        }
        command = [str(PROGRAMS / "ansible-playbook"), "openfleet.clusters.prepare_hub", "-e", json.dumps(variables)]
        environment = engine_environment(self.folder)
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"The playbook prepare_hub has failed:\n{done.stdout}{done.stderr}")

    def credential(self, hub: Site) -> Path:
        """The kubeconfig for the home cluster that the playbook has stored on the hub. In a Pod, it is mounted."""
        secret = hub.access.kube.get("v1", "Secret", CREDENTIAL, SITE_NAMESPACE)
        file = self.folder / f"{hub.name}.home.kubeconfig"
        write_private(file, base64.b64decode(secret["data"][KEY]).decode())
        return file

    # The processes

    def start_home_engine(self) -> None:
        port = free_port()
        settings = {"hub_timeout": HUB_TIMEOUT, "health": {"port": port}}
        variables = {"home_kubeconfig": str(self.at_home.kubeconfig(SITE_NAMESPACE, ENGINE)), "fleet_source": settings}
        self._launch(self.home, "openfleet.clusters.fleet", variables)
        self.until(lambda: b"\nopenfleet_fleet_leader 1" in page(port, "metrics") and page(port, "healthz"), "the home engine leads")

    def start_hub_engines(self) -> None:
        """One process for each hub, with the rules of both shipped rulebooks: those for orders, and those of the agent."""
        for hub in (self.east, self.west):
            variables = {
                "fleet_hub": hub.name,
                "home_kubeconfig": str(self.credential(hub)),
                "hub_kubeconfig": str(hub.access.kubeconfig),
                "event_source": {"webhook": {"port": free_port(), "token": secrets.token_urlsafe(32)}},
                "fleet_agent_health": {"port": 0},
            }
            rulebooks = [yaml.safe_load((RULEBOOKS / f"{name}.yml").read_text()) for name in ("cluster_fulfillment", "fleet_agent")]
            write_json(self.folder / hub.name / "hub.yml", [ruleset for rulebook in rulebooks for ruleset in rulebook])
            self._launch(hub, str(self.folder / hub.name / "hub.yml"), variables)
        for hub in (self.east, self.west):
            self.until(partial(self.is_ready, hub.name), f"the checks of {hub.name} pass")

    def start_api(self) -> None:
        self.api.start(self.at_home.kubeconfig(SITE_NAMESPACE, API))
        self.until(self.api.is_ready, "the API is ready")

    def stop(self) -> None:
        for process in self._processes():
            if process.was_started:
                process.stop()

    def until(self, condition: Callable[[], Result], what: str) -> Result:
        """Wait for it, as long as all that was started and not killed runs."""

        def poll() -> Result:
            if ended := [process.folder for process in self._processes() if process.was_started and not process.is_running]:
                raise UserError(f"The process of {', '.join(map(str, ended))} has ended by itself.")
            return condition()

        try:
            return until(poll, what, WAIT_SECONDS)
        except UserError as problem:
            ends = [f"{process.folder}:\n{process.log_tail()}" for process in self._processes() if process.was_started]
            raise UserError("\n".join([f"{problem} The ends of the logs:", *ends])) from None

    def is_ready(self, hub: str) -> bool:
        return bool(self.ready(hub)["status"] == "True")

    def ready(self, hub: str) -> Object:
        """The condition Ready of a Hub."""
        status = self.home.access.kube.get(API_VERSION, HUB, hub).get("status") or {}
        unknown: Object = {"status": "Unknown", "reason": "", "message": ""}
        return next((each for each in status.get("conditions") or () if each["type"] == "Ready"), unknown)

    def _processes(self) -> list[DemoProcess]:
        return [self.api, *(site.engine for site in self.sites)]

    def _launch(self, site: Site, rulebook: str, variables: dict[str, Any]) -> None:
        folder = site.engine.folder
        folder.mkdir(mode=0o700, exist_ok=True)
        site.engine.launch(engine_arguments(folder, rulebook, variables), engine_environment(folder))


def _infrastructure() -> list[Object]:
    """Bare-metal hosts, as the infrastructure operator discovers them, and a default storage class."""
    default = {"name": "standard", "annotations": {IS_DEFAULT: "true"}}
    labels = {AgentLabels(Names().group).resource_class: CLASS}
    hosts = [{"name": f"host-{number}", "namespace": INVENTORY, "labels": labels} for number in range(1, HOSTS + 1)]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": INVENTORY}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": default, "provisioner": "example.com/none"},
        *({"apiVersion": AGENTS, "kind": AGENT, "metadata": metadata, "spec": {"approved": False, "role": ""}} for metadata in hosts),
    ]


@contextlib.contextmanager
def running_fleet(sites: FleetSites) -> Iterator[None]:
    """The clusters, their engines and the API. All of it ends afterwards."""
    end_in_order()
    try:
        with stage("Clusters: home, and the hubs east and west"):
            sites.start()
        with stage("CRDs, permissions and policies of the fleet at home"):
            sites.at_home.install()
        for hub in (sites.east, sites.west):
            with stage(f"Hub {hub.name} joins the fleet by prepare_hub, with {HOSTS} hosts"):
                sites.prepare_hub(hub)
        with stage("Rulebook openfleet.clusters.fleet at home"):
            sites.start_home_engine()
        with stage("Rulebooks fleet_agent and cluster_fulfillment on the hubs"):
            sites.start_hub_engines()
        with stage("REST API of the fleet"):
            sites.start_api()
        yield
    finally:
        try:
            with stage("API and rulebooks ended"):
                sites.stop()
        finally:
            with stage("Clusters ended: no process, no port, no file is left"):
                sites.end()
