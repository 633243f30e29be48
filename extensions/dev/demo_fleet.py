"""`make demo-fleet`: two tenants order clusters from one API, and two hubs create them. One hub is drained, the other one is lost.

Rulebooks do all the work; the demo is the tenants and the operator, with curl and tokens of their own, and shows the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from ...plugins.module_utils.common.types import Object
from ...plugins.module_utils.lock.lease import SITE_NAMESPACE
from ..sandbox import gobuild
from ..sandbox.access import Access
from ..sandbox.build import build
from ..sandbox.processes import write_private
from ..sandbox.screen import UserError, heading, run_command, stage
from .curl import Curl
from .fleet_sites import CLASS, EAST, WEST, FleetSites, running_fleet
from .rules_engine import STATE

PAGE = Path("docs/fleet_walkthrough.md")
TEMPLATE = "openfleet.clusters.ocp_4_17_small"
ACME, GLOBEX = "acme", "globex"
ALICE, BOB, OPERATOR = "alice", "bob", "operator"
USERS = {ALICE: ACME, BOB: GLOBEX}
QUOTAS = {ACME: {"clusters": 4, "nodes": 6}, GLOBEX: {"clusters": 2}}


def main() -> int:
    heading("openfleet.clusters: one API for the clusters of two hubs, on this machine")
    build()
    sites = FleetSites(STATE.with_name(f"{STATE.name}-fleet"))
    if sites.are_running:
        raise UserError("`make demo-fleet` runs in this checkout already: wait for its end.")
    with running_fleet(sites):
        demo = FleetDemo(sites)
        demo.add_tenants()
        demo.order()
        demo.connect()
        demo.drain()
        demo.lose()
        demo.delete()
        demo.show_tables()
    summary()
    return 0


class FleetDemo:
    """What people do. `ids` has the clusters by their names."""

    def __init__(self, sites: FleetSites) -> None:
        self._sites = sites
        self._curl = Curl(sites.api.url, sites.folder)
        self._ids: dict[str, str] = {}

    def add_tenants(self) -> None:
        with stage("Tenants acme and globex, with tokens for their users"):
            for user, tenant in USERS.items():
                self._sites.at_home.add_tenant(tenant, user)
                self._curl.keep_token(user, self._sites.at_home.token(tenant, user))
            self._sites.at_home.add_operator(OPERATOR)
            self._curl.keep_token(OPERATOR, self._sites.at_home.token(SITE_NAMESPACE, OPERATOR))
            self._sites.until(lambda: self._curl.ask(OPERATOR, "/admin/hubs").status == 200, "the API knows its operator")
            for user in USERS:
                self._sites.until(lambda user=user: self._curl.ask(user, "/tenants").body["items"], f"the API knows {user}")  # type: ignore[misc]
        heading(f"The page of the fleet, while the demo runs: {self._sites.api.address}")
        for user in (*USERS, OPERATOR):
            print(f"the token of {user}: awk 'NR == 1 {{print $3}}' {self._sites.folder / user}", flush=True)
        heading(f"FLEET={self._sites.api.url}")
        for tenant, hard in QUOTAS.items():
            quota = self._curl.send(OPERATOR, "PUT", f"/admin/quotas/{tenant}", {"spec": {"hard": hard}})
            print(f"limits of {quota['tenant']}: {_amounts(quota['hard'])}")

    # Orders

    def order(self) -> None:
        """Four clusters that become Ready, and one that is refused."""
        for name in ("shop", "web"):
            self._create(ALICE, name)
        for name in ("lab-1", "lab-2"):
            self._create(BOB, name)
        for name in ("shop", "web", "lab-1", "lab-2"):
            with stage(f"  {name}") as shown:
                self._sites.until(partial(self._is_ready, name), f"{name} is Ready")
                status = self._status(name)
                shown.note(f"Ready on {status['hub']}, {status['nodes']} nodes, {status['version']}")
        if self._hub("shop") == self._hub("web"):
            raise UserError("The clusters of acme are on one hub instead of two.")
        self._create(BOB, "lab-3")
        refused = self._condition("lab-3", "QuotaReserved", "False")
        print(f"lab-3: {refused['message']}")

    def _create(self, user: str, name: str) -> None:
        spec = {"template": TEMPLATE, "nodeSets": {"workers": {"class": CLASS, "size": 1}}}
        created = self._curl.send(user, "POST", "/clusters", {"name": name, "spec": spec}, expect=202)
        self._ids[name] = created["id"]

    def connect(self) -> None:
        """A kubeconfig that expires, made by the hub when it is asked for."""
        answer = self._curl.send(ALICE, "POST", f"/clusters/{self._ids['shop']}/kubeconfig", {"expirationSeconds": 600})
        file = self._sites.folder / "shop.kubeconfig"
        write_private(file, answer["kubeconfig"])
        print(f"a kubeconfig that expires at {answer['expiresAt']}")
        heading("$ kubectl --kubeconfig=shop.kubeconfig get nodes")
        print(Access(file).kubectl("get", "nodes").stdout, flush=True)
        self._curl.send(BOB, "GET", f"/clusters/{self._ids['shop']}", expect=404)
        print("a cluster of another tenant does not exist for bob")

    # What happens to hubs

    def drain(self) -> None:
        drained = self._curl.send(OPERATOR, "POST", f"/admin/hubs/{EAST}/drain")
        print(f"{EAST} takes no further cluster; on it are {', '.join(each['name'] for each in drained['clusters'])}")
        self._create(ALICE, "next")
        self._condition("next", "Scheduled", "True")
        print(f"next: {self._status('next')['scheduling']['message']}")

    def lose(self) -> None:
        """A hub is lost with everything that is on it. Its clusters stay what they were, and say that this may be out of date."""
        with stage(f"{WEST} killed with -9: etcd, API server, hosted clusters, rulebook"):
            self._sites.west.kill()
        with stage("  The missing heartbeat is detected"):
            self._sites.until(lambda: self._ready(WEST)["reason"] == "AgentNotReporting", "home detects the missing heartbeat")
        self._curl.send(OPERATOR, "GET", f"/admin/hubs/{WEST}")
        print(f"{WEST}: {self._ready(WEST)['message']}")
        lost = next(name for name in ("shop", "web") if self._hub(name) == WEST)
        print(f"{lost}: {self._condition(lost, 'HubReporting', 'False')['message']}")
        self._create(ALICE, "late")
        print(f"late: {self._condition('late', 'Scheduled', 'False')['message']}")

    def delete(self) -> None:
        """A drained hub still serves its clusters."""
        name = next(name for name in ("shop", "web") if self._hub(name) == EAST)
        self._curl.send(ALICE, "DELETE", f"/clusters/{self._ids[name]}", expect=202)
        with stage(f"  {name} deleted on {EAST}"):
            self._sites.until(lambda: self._curl.ask(ALICE, f"/clusters/{self._ids[name]}").status == 404, f"{name} is deleted")
        self._sites.until(lambda: self._curl.ask(ALICE, "/records").body["items"], f"the record of {name} is there")
        records = self._curl.send(ALICE, "GET", "/records")["items"]
        for each in records:
            print(f"{each['name']} by {each['owner']}: {each['reason']}, {_amounts(each['nodeHours'])} node hours")
        if [each["name"] for each in records] != [name]:
            raise UserError(f"The records of acme are {records}.")

    # What is read

    def _cluster(self, name: str) -> Object:
        owner = BOB if name.startswith("lab") else ALICE
        found: Object = self._curl.ask(owner, f"/clusters/{self._ids[name]}").body
        return found

    def _status(self, name: str) -> Object:
        found: Object = self._cluster(name)["status"]
        if found["state"] == "Failed":
            raise UserError(f"{name} has failed: {found.get('failure', {}).get('message', 'its status has no reason')}")
        return found

    def _ready(self, hub: str) -> Object:
        """The condition Ready of a hub, as the API shows it."""
        found: Object = self._curl.ask(OPERATOR, f"/admin/hubs/{hub}").body
        return next(each for each in found["conditions"] if each["type"] == "Ready")

    def _is_ready(self, name: str) -> bool:
        return bool(self._status(name)["state"] == "Ready")

    def _hub(self, name: str) -> str:
        return str(self._status(name).get("hub", ""))

    def _condition(self, name: str, kind: str, status: str) -> Object:
        """Wait until the cluster has the condition, and return it."""

        def found() -> Object | None:
            conditions = self._status(name).get("conditions") or ()
            return next((each for each in conditions if (each["type"], each["status"]) == (kind, status)), None)

        return self._sites.until(found, f"{kind} of {name} is {status}") or {}

    def show_tables(self) -> None:
        """All tenants, as the operator sees them."""
        clusters = self._curl.send(OPERATOR, "GET", "/admin/clusters?order_by=tenant,name")["items"]
        _print_table(("TENANT", "CLUSTER", "STATE", "HUB", "NODES", "VERSION", "WHY"), map(_cluster_row, clusters))
        hubs = self._curl.send(OPERATOR, "GET", "/admin/hubs")["items"]
        _print_table(("HUB", "READY", "SCHEDULABLE", "CLUSTERS", "FREE NODES"), map(_hub_row, hubs))
        quotas = self._curl.send(OPERATOR, "GET", "/admin/quotas")["items"]
        _print_table(("TENANT", "USED", "OF"), [_quota_row(each) for each in quotas if each["hard"]])


def _cluster_row(cluster: Object) -> tuple[str, ...]:
    status = cluster["status"]
    cells = (str(status.get(name, "")) for name in ("state", "hub", "nodes", "version"))
    return cluster["tenant"], cluster["name"], *cells, _why(status)


def _hub_row(hub: Object) -> tuple[str, ...]:
    answers = ("yes" if each else "no" for each in (hub["ready"], hub["spec"].get("schedulable", True)))
    return hub["name"], *answers, str(hub["clusters"]), _amounts(hub["free"]["nodes"])


def _quota_row(quota: Object) -> tuple[str, ...]:
    used = {name: quota["used"].get(name, 0) for name in quota["hard"]}
    return quota["tenant"], _amounts(used), _amounts(quota["hard"])


def _why(status: Object) -> str:
    """The first condition that explains a state."""
    kinds = ("QuotaReserved", "Scheduled", "HubReporting")
    found = [each for each in status.get("conditions") or () if each["type"] in kinds and each["status"] == "False"]
    return str(found[0]["message"]) if found else ""


def _amounts(amounts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in sorted(amounts.items())) or "none"


def _print_table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    lines = [titles, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    print("\n".join(texts), flush=True)


def summary() -> None:
    print(f"""
What was built: a home cluster and the hubs {EAST} and {WEST} (etcd, kube-apiserver and kube-controller-manager
{gobuild.KUBERNETES_VERSION} each), a rulebook for each, and the REST API of the fleet. Four clusters with API servers of their own were
created on the hubs for the tenants {ACME} and {GLOBEX}; quota refused one, a drained hub took none, a lost hub was reported.
The API servers, tokens and all objects were real; HyperShift's operator and the machines behind the nodes were a stand-in.

Try next, on a hub that stays and has a page of its own:
  make serve
The walk-through explains each step: {PAGE}""")


if __name__ == "__main__":
    run_command(main)
