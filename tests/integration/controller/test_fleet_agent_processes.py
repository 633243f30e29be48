"""Agents of a hub as processes: the shipped rulebook in a real rules engine leads, is killed, and a second agent takes over.

The second one also survives that its credential is revoked: it reads the next one from its file.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, ASSIGNMENT
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Unauthorized

from ..support.engines import Engine
from ..support.fleet_agents import AgentSite, agent_installed, agent_site
from ..support.kubeconfigs import kubeconfig

RULEBOOK = "openfleet.clusters.fleet_agent"
WAIT_SECONDS = 300
# The event source as a rules engine calls it. It ends with this test.
SOURCE = """
import asyncio, json, sys, threading, os
from ansible_collections.openfleet.clusters.extensions.eda.plugins.event_source.fleet_agent import main
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
asyncio.run(main(asyncio.Queue(), json.loads(sys.argv[1])))
"""


class RulebookAgent(Engine):
    """The shipped rulebook in ansible-rulebook."""

    def __init__(self, site: AgentSite, folder: Path, credential: Path) -> None:
        health = {"port": free_port()}
        super().__init__(
            site.hub,
            folder,
            RULEBOOK,
            fleet_hub=site.name,
            home_kubeconfig=str(credential),
            fleet_agent_health=health,
            **_hub_options(site, folder),
        )
        self.health_port = health["port"]

    def is_ready(self) -> bool:
        if not self.is_running:
            raise AssertionError(self.text())
        return _leads(self.health_port)


def _hub_options(site: AgentSite, folder: Path) -> dict[str, str]:
    """A kubeconfig with a token of the shipped account."""
    content = kubeconfig(site.hub)
    token = site.hub.kubectl("create", "token", "openfleet-fleet-agent", "-n", "openfleet-system").stdout.strip()
    content["users"] = [{"name": each["name"], "user": {"token": token}} for each in content["users"]]
    file = folder / "hub.kubeconfig"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return {"hub_kubeconfig": str(file)}


def _leads(port: int) -> bool:
    with contextlib.suppress(urllib3.exceptions.HTTPError):
        metrics = urllib3.request("GET", f"http://127.0.0.1:{port}/metrics", retries=False, timeout=5).data.decode()
        return "openfleet_agent_leader 1.0" in metrics
    return False


@pytest.fixture
def site(quick_hub: Access) -> Iterator[AgentSite]:
    with agent_installed(quick_hub), fresh_namespace(quick_hub) as name, agent_site(quick_hub, quick_hub, name) as made:
        yield made
        lease = {"name": f"fleet-agent.{name}-leader", "namespace": "openfleet-system"}
        quick_hub.kube.delete({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease})


def revocable_token(site: AgentSite, name: str) -> str:
    """A token of the agent that ends with a Secret of this name."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": site.namespace}}
    site.home.kube.create(secret)
    bound = ("--bound-object-kind", "Secret", "--bound-object-name", name)
    return site.home.kubectl("create", "token", "agent", "-n", site.namespace, *bound).stdout.strip()


def credential(site: AgentSite, token: str) -> str:
    content = kubeconfig(site.home)
    content["users"] = [{"name": each["name"], "user": {"token": token}} for each in content["users"]]
    return yaml.safe_dump(content)


def is_refused(kube: Kube, site: AgentSite) -> bool:
    try:
        kube.list_all(API_VERSION, ASSIGNMENT, site.namespace)
    except Unauthorized:
        return True
    return False


def until_ordered(site: AgentSite, item: Object, why: str) -> None:
    until(lambda: site.order(item) is not None, why, WAIT_SECONDS)


def test_second_agent_takes_over_from_a_killed_engine_and_outlives_its_credential(site: AgentSite, tmp_path: Path) -> None:
    file, first, second = tmp_path / "home.kubeconfig", tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    file.write_text(credential(site, revocable_token(site, "former")), encoding="utf-8")
    engine = RulebookAgent(site, first, file)
    port = free_port()
    arguments = {
        "hub": site.name,
        "home": {"kubeconfig": str(file)},
        "kubeconfig": _hub_options(site, second)["hub_kubeconfig"],
        "heartbeat": 1,
        "health": {"port": port},
    }
    try:
        engine.start()
        with subprocess.Popen([sys.executable, "-c", SOURCE, json.dumps(arguments)], stdin=subprocess.PIPE) as process:
            try:
                by_engine = site.assign("first")
                until_ordered(site, by_engine, "the engine creates the order")
                until(lambda: "first: created, Progressing" in engine.text(), "the rulebook reports it", WAIT_SECONDS)
                assert not _leads(port)
                engine.kill()
                by_second = site.assign("second")
                until_ordered(site, by_second, "the second agent takes over")
                until(lambda: _leads(port), "it says so", WAIT_SECONDS)

                former, following = Kube(target({"kubeconfig": yaml.safe_load(file.read_text())}, {})), revocable_token(site, "next")
                site.home.kube.delete({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "former", "namespace": site.namespace}})
                until(lambda: is_refused(former, site), "the former credential is revoked", WAIT_SECONDS)
                later = site.assign("later")
                # In one step, as the kubelet updates the file of a Secret.
                (tmp_path / "next").write_text(credential(site, following), encoding="utf-8")
                (tmp_path / "next").rename(file)
                until_ordered(site, later, "the agent works with the next credential")
                site.delete(later)
                until(lambda: site.assignment(later) is None, "the agent deletes with it", WAIT_SECONDS)
            finally:
                process.kill()
    finally:
        engine.stop()
