"""The modules of a fleet on a real API server: their examples, repeated, in check mode, and without secrets in what they show."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.inventory import list_clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, HUB, QUOTA
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from ..support.actions import answer
from ..support.fleet import fleet_of
from ..support.playbooks import Answer

PREFIX = "openfleet.clusters."
SECRET = "hunter2-do-not-show"  # noqa: S105
Task = Callable[..., Answer]


def examples(module: str, namespace: str) -> list[Object]:
    """The arguments of the module's tasks in its examples, for a tenant and a hub of this test."""
    text = importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").EXAMPLES
    tasks = yaml.safe_load(text.replace("namespace: team", f"namespace: {namespace}").replace("name: east", f"name: {namespace}"))
    return [task[PREFIX + module] or {} for task in tasks if PREFIX + module in task]


@pytest.fixture
def run(hub: Access) -> Task:
    def run_task(module: str, *, check: bool = False, **arguments: Any) -> Answer:
        return answer(module, check=check, kubeconfig=str(hub.kubeconfig), **arguments)

    return run_task


@pytest.mark.parametrize(("module", "kind"), [("fleet_cluster", CLUSTER), ("hub", HUB), ("fleet_quota", QUOTA)])
def test_examples_change_once_and_check_mode_predicts(hub: Access, namespace: str, run: Task, module: str, kind: str) -> None:
    def stored() -> Object | None:
        name = {CLUSTER: "demo", HUB: namespace, QUOTA: "default"}[kind]
        return hub.kube.find(API_VERSION, kind, name, None if kind == HUB else namespace)

    for arguments in examples(module, namespace):
        before = stored()
        predicted = run(module, check=True, **arguments)
        assert stored() == before
        done = run(module, **arguments)
        assert not done.failed, done.result
        assert done.changed and predicted.changed
        assert done.result["diff"] == predicted.result["diff"]
        if arguments.get("state") != "absent":
            assert done.result[module]["spec"] == predicted.result[module]["spec"] == stored()["spec"]  # type: ignore[index]
        again = run(module, **arguments)
        assert not again.failed and not again.changed and "diff" not in again.result
    if kind != QUOTA:
        assert stored() is None


def test_info_returns_what_exists(namespace: str, run: Task) -> None:
    (of_team,) = examples("fleet_cluster_info", namespace)
    (listed,) = examples("hub_info", namespace)
    assert run("fleet_cluster_info", **of_team).result["fleet_clusters"] == []
    for module in ("fleet_cluster", "hub"):
        assert run(module, **examples(module, namespace)[0]).changed
    try:
        (found,) = run("fleet_cluster_info", **of_team).result["fleet_clusters"]
        assert (found["name"], found["namespace"], found["deleting"]) == ("demo", namespace, False)
        assert run("fleet_cluster_info", name="demo", namespace=namespace).result["fleet_clusters"] == [found]
        assert run("fleet_cluster_info", name="other", namespace=namespace).result["fleet_clusters"] == []
        assert namespace in [each["name"] for each in run("hub_info", **listed).result["hubs"]]
        (named,) = run("hub_info", name=namespace).result["hubs"]
        assert named["labels"] == {"gpu": "yes"}
        assert named["spec"]["schedulable"] is True
    finally:
        run("hub", name=namespace, state="absent")


def test_fields_that_are_omitted_stay_and_lists_replace(namespace: str, run: Task) -> None:
    assert run("fleet_quota", namespace=namespace, hard={"clusters": 1, "nodes": 2}, max_lifetime="1d").changed
    assert run("fleet_quota", namespace=namespace, hard={"nodes": 3}).result["fleet_quota"]["spec"] == {
        "hard": {"nodes": 3},
        "maxLifetime": "1d",
    }


def test_parameters_are_never_shown(namespace: str, run: Task) -> None:
    arguments = {"name": "demo", "namespace": namespace, "template": "small", "template_parameters": {"pull_secret": SECRET}}
    done = run("fleet_cluster", **arguments)
    changed = run("fleet_cluster", **arguments | {"template_parameters": {"pull_secret": f"{SECRET}-2"}})
    assert done.changed and changed.changed
    assert SECRET not in str(done.result) + str(changed.result)
    assert "pull_secret" in done.result["diff"]["after"]


def test_invalid_object_is_refused_with_the_field_also_in_check_mode(namespace: str, run: Task) -> None:
    for check in (True, False):
        failed = run("fleet_cluster", check=check, name="demo", namespace=namespace)
        assert failed.failed and "spec.template" in failed.message
        failed = run("fleet_cluster", check=check, name="demo", namespace=namespace, template="small", placement={"zone": "a"})
        assert failed.failed and "zone" in failed.message


def test_inventory_has_the_clusters_of_all_hubs(hub: Access, namespace: str) -> None:
    with fleet_of(hub, namespace) as fleet:
        east = fleet.add_hub("east", region="eu")
        fleet.set_quota(hard={"clusters": 1})
        for name in ("demo", "more"):
            fleet.add_cluster(name)
        fleet.reconcile()
        hosts = list_clusters(
            hub.kube, Names(), {}, namespace=namespace, sources=["fleet_clusters"], registry_kind="ClusterRegistry", warn=pytest.fail
        )
    by_phase = {host.variables["fleet_phase"]: host for host in hosts}
    assert sorted(host.host for host in hosts) == [f"demo.{namespace}", f"more.{namespace}"]
    bound, waiting = by_phase["Progressing"], by_phase["Pending"]
    groups = ["fleet_cluster", "phase_progressing", "template_ocp_4_17_small", f"hub_{east}", "region_eu"]
    assert (bound.groups, bound.variables["fleet_hub_name"], bound.variables["fleet_region"]) == (groups, east, "eu")
    assert waiting.groups == ["fleet_cluster", "phase_pending", "template_ocp_4_17_small"]
