"""The modules and playbooks of disaster recovery on two real API servers: repeated, in check mode, with errors, for people."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from ..support.actions import answer
from ..support.dr_run import POLICY, SECONDS, Recovery, recovery
from ..support.playbooks import COLLECTION, RUN_SECONDS, Task, play
from ..support.replication import Protected

WORKLOAD = {"namespace": "shop", "name": "database"}


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    with recovery(application, bucket) as created:
        yield created


class Tasks:
    """Tasks on one cluster."""

    def __init__(self, dr: Recovery, site: str) -> None:
        access = {"kubeconfig": str(dr.sites[site].kubeconfig), "site_namespace": dr.namespace}
        self._options = dr.options | access

    def __call__(self, module: str, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        done = answer(module, check=check, **self._options | arguments)
        assert not done.failed, done.result
        return dict(done.result)

    def fail(self, module: str, *, check: bool = False, **arguments: Any) -> str:
        return answer(module, check=check, **self._options | arguments).message


def examples(module: str, bucket: dict[str, str]) -> list[Task]:
    """The examples of a module, with the bucket of this test."""
    tasks: list[Task] = yaml.safe_load(importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").EXAMPLES)
    for task in tasks:
        for arguments in task.values():
            if isinstance(arguments, dict) and "bucket" in arguments:
                arguments["bucket"] = bucket["bucket"]
    return tasks


def placed_of(result: dict[str, Any], dr: Recovery) -> dict[str, Any]:
    """The placement of this test's workload: those of other tests may end just now."""
    (found,) = [each for each in result["placements"] if each["namespace"] == dr.namespace]
    return dict(found)


def test_request_is_made_led_shown_and_repeated(dr: Recovery) -> None:
    east, west = Tasks(dr, "east"), Tasks(dr, "west")
    names = {"namespace": dr.namespace, "name": "app"}
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    new = {"request": "protect", "policy": POLICY, "cluster": "east", "pvc_selector": {"matchLabels": dr.application.app.labels}}
    assert "set policy" in east.fail("dr_request", **names, request="protect")
    assert "has no DRPlacementControl" in east.fail("dr_request", **names, request="failover", cluster="west")
    assert east("dr_request", check=True, **names, **new)["plan"] == ["create the DRPlacementControl"] and not dr.has_drpc("east")
    assert east("dr_request", **names, **new)["changed"] and not east("dr_request", **names, **new)["changed"]
    assert "another drPolicyRef" in east.fail("dr_request", **names, request="protect", policy="other")
    assert f"{dr.namespace}/app: no leader has begun" in east("dr_placement_info")["lines"], "those of other tests may end just now"

    epoch = dr.acquire("east")
    planned = east("dr_placement", check=True, epochs={f"{dr.namespace}/app": epoch})
    placement = placed_of(planned, dr)
    assert (planned["changed"], placement["actions"], dr.state().intent) == (True, ["make east primary"], {})
    assert any("action: make east primary" in each["after"] for each in planned["diff"])
    placement = placed_of(east("dr_placement", epochs={f"{dr.namespace}/app": epoch}), dr)
    assert placement["actions"][0] == "make east primary"
    dr.lead_until("east", epoch, "Deployed", "Completed")
    assert placed_of(west("dr_placement"), dr)["ended"] == "Watched"
    assert west("dr_placement", **names, epoch=epoch + 7)["placements"][0]["ended"] == "Fenced"
    (info,) = west("dr_placement_info", **names)["placements"]
    assert (info["phase"], info["home"], info["leader"], info["epoch"]) == ("Deployed", "east", "east", epoch)
    assert (info["requested"]["number"], info["request"]) == (1, None)

    planned = west("dr_request", check=True, **names, request="failover", cluster="west")
    assert planned["blocked_by"] == [] and "action" not in dr.drpc("west")["spec"]
    assert planned["plan"][-1] == "make east secondary"
    planned = west("dr_request", check=True, **names, request="relocate", cluster="nowhere")
    assert planned["blocked_by"] == ["preferredCluster is nowhere, which is not in the policy. Set preferredCluster to one of east, west."]
    assert "Not done after 0 s" in west.fail("dr_request", **names, request="failover", cluster="west", wait=True, wait_timeout=0)
    assert dr.options["secret_key"] not in json.dumps([info, planned, placement])


def test_test_failover_is_ended_by_a_request(dr: Recovery) -> None:
    east = Tasks(dr, "east")
    names = {"namespace": dr.namespace, "name": "app"}
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("east")
    epoch = dr.acquire("east")
    dr.lead_until("east", epoch, "Deployed", "Completed")

    def is_protected() -> bool:
        dr.lead("east", epoch)
        return dr.conditions("east")["Protected"][0] == "True"

    until(is_protected, "the workload is protected", SECONDS)
    assert east("dr_request", **names, request="test_failover", cluster="west")["spec"] == {
        "action": "Failover",
        "failoverCluster": "west",
        "dryRun": True,
    }
    dr.lead_until("east", epoch, "FailedOver", "TestingFailover", peer_ready=False)
    assert not east("dr_request", **names, request="test_failover", cluster="west", wait=True)["changed"]
    dr.application.until_running("west")
    assert dr.application.app.runs(dr.sites["east"].kube), "the workload stays where it is"
    west = Tasks(dr, "west")
    assert "Run this on east. If east is lost: set this copy to the" in west.fail("dr_request", **names, request="end_test")
    assert "The request was not made" in west.fail("dr_request", check=True, **names, request="end_test")
    assert "action" not in dr.drpc("west")["spec"]
    assert east("dr_request", **names, request="end_test")["spec"] == {"action": None, "dryRun": None}
    dr.lead_until("east", epoch, "Deployed", "Completed")
    assert dr.application.get("west")["spec"]["replicationState"] == "secondary"


def test_playbook_fails_a_workload_over_and_shows_the_progress(dr: Recovery, tmp_path: Path) -> None:
    output = tmp_path / "output"
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("east")
    dr.lead_until("east", dr.acquire("east"), "Deployed", "Completed")

    def run(*options: str) -> str:
        values = {
            "dr_workload_namespace": dr.namespace,
            "dr_workload": "app",
            "dr_cluster": "west",
            "dr_namespace": dr.namespace,
            "dr_bucket": dr.options["bucket"],
            "dr_wait": True,
            "dr_wait_timeout": SECONDS,
        }
        settings = {
            "KUBECONFIG": str(dr.sites["west"].kubeconfig),
            "ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"),
            "AWS_ENDPOINT_URL_S3": dr.options["endpoint_url"],
            "AWS_REGION": dr.options["region"],
            "AWS_ACCESS_KEY_ID": dr.options["access_key"],
            "AWS_SECRET_ACCESS_KEY": dr.options["secret_key"],
        }
        command = [str(Path(sys.executable).parent / "ansible-playbook"), f"{COLLECTION}.failover", "-e", json.dumps(values), *options]
        with output.open("w") as file:
            done = subprocess.run(
                command, env=os.environ | settings, stdout=file, stderr=subprocess.STDOUT, timeout=RUN_SECONDS, check=False
            )
        assert done.returncode == 0, output.read_text()
        assert dr.options["secret_key"] not in output.read_text()
        return output.read_text()

    assert "make east secondary" in run("--check") and "action" not in dr.drpc("west")["spec"]
    epoch, stop = dr.acquire("west"), threading.Event()

    def until_shown() -> None:
        """The playbook asks once a second: let it see the phase before it ends."""
        if dr.state().intent.get("phase") == "FailingOver":
            until(lambda: stop.is_set() or "app: FailingOver" in output.read_text(), "the phase is shown")

    def lead() -> None:
        while not stop.wait(0.2):
            dr.reconciler("west", until_shown).lead(dr.workload, epoch)

    leader = threading.Thread(target=lead)
    leader.start()
    try:
        shown = run()
    finally:
        stop.set()
        leader.join()
    assert f"{dr.namespace}/app: FailingOver" in shown and f"{dr.namespace}/app: FailedOver" in shown
    assert dr.drpc("west")["spec"]["action"] == "Failover"


def test_examples_of_disaster_recovery(dr: Recovery, tmp_path: Path) -> None:
    east = dr.sites["east"]
    created = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("shop", "openfleet-system")]
    for item in created:
        east.kube.apply(item, force=True)
    dr.register(east, "openfleet-system")
    protect, plan, show, end = examples("dr_request", dr.options)
    settings = {
        "KUBECONFIG": str(east.kubeconfig),
        "AWS_ENDPOINT_URL_S3": dr.options["endpoint_url"],
        "AWS_REGION": dr.options["region"],
        "AWS_ACCESS_KEY_ID": dr.options["access_key"],
        "AWS_SECRET_ACCESS_KEY": dr.options["secret_key"],
    }
    try:
        tasks = [protect, *examples("dr_placement", dr.options), *examples("dr_placement_info", dr.options), plan, show, end]
        played = play(tmp_path, tasks, environment=settings)
        assert played.code == 0, played.output
        assert played["Lead one DRPlacementControl"].result["placements"][0]["actions"][0] == "make east primary"
        assert played["Show a line for each"].result["msg"][0].startswith("shop/database: Deploy")
        # How far the deployment has come by then decides what comes first.
        assert played["Plan a failover"].result["plan"][0] in ("Initiating/no progression", "Deploying/UpdatingPlRule")
        assert played["End the protection"].changed
        assert dr.options["secret_key"] not in played.output
    finally:
        for site in dr.sites.values():
            for kind in ("DRPlacementControl", "VolumeReplicationGroup"):
                found = site.kube.find("ramendr.openshift.io/v1alpha1", kind, "database", "shop")
                if found:
                    site.kube.patch(found, {"metadata": {"finalizers": None}}, checked=False)
            for item in created:
                site.kube.delete(item)
