"""The loop closed, by a real ansible-rulebook process on a real API server: from an order to a cluster that stays as ordered, and back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import parse_time

from ..support.engines import AtWork, Engine, running
from ..support.orders import NEXT_RELEASE, RELEASE, Orders
from ..support.samples import FAULT

EXAMPLE = Path(__file__).parents[3] / "docs/examples/site_rulebook.yml"
PAST = "2020-01-01T00:00:00.000000Z"
GATE = """
- name: Show that a run has come here
  ansible.builtin.file:
    path: "{folder}/here-{{{{ cluster_order.metadata.name }}}}"
    state: touch
    mode: "0600"
  when: cluster_order.metadata.name is match('gated')
- name: Hold it up
  ansible.builtin.wait_for:
    path: "{folder}/go-on-{{{{ cluster_order.metadata.name }}}}"
    sleep: 1
  when: cluster_order.metadata.name is match('gated')
"""


class Loop(AtWork):
    sandbox: Sandbox
    folder: Path

    def until_gone(self, name: str) -> None:
        until(lambda: self.orders.is_gone(name), f"{name} is gone; the log is {self.engine.log}", 600)

    def here(self, name: str) -> bool:
        return (self.folder / f"here-{name}").exists()

    def go_on(self, name: str) -> None:
        (self.folder / f"go-on-{name}").touch()

    def full(self, name: str) -> str:
        return f"{self.orders.namespace}/{name}"

    def hosted_cluster(self, name: str) -> dict[str, object] | None:
        found: dict[str, object] | None = self.hub.get("hostedcluster", name, "-n", self.orders.working(name))
        return found


@pytest.fixture(scope="module")
def loop(new_sandbox: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    sandbox, folder = new_sandbox(status_only=True), tmp_path_factory.mktemp("loop")
    hub = Access(sandbox.kubeconfig())
    with fresh_namespace(hub) as namespace:
        orders = Orders(hub, namespace, folder)
        gate = orders.role("gate", {"tasks/main.yml": GATE.format(folder=folder)})
        orders.fragile_template("careful")
        # Its first attempt fails while the other tests go on; when they are done, the next is due.
        (folder / "broken-flaky").touch()
        orders.place("flaky", nodes={"fc430": 1}, template="acme.site.careful")
        with running(Engine(hub, folder, str(EXAMPLE), hooks={"pre_install": [gate]}, source={"start_timeout": 60})) as engine:
            yield Loop(sandbox=sandbox, hub=hub, orders=orders, engine=engine, folder=folder)
    sandbox.down()


@pytest.fixture(scope="module")
def flaky(loop: Loop) -> dict[str, object]:
    """The status of an order whose first attempt has failed; from now on it would succeed."""
    loop.until_phase("Failed", "flaky")
    status = loop.orders.status("flaky")
    (loop.folder / "broken-flaky").unlink()
    return status


@pytest.mark.usefixtures("flaky")
def test_an_order_becomes_ready_in_steps_and_no_job_waits_between_them(loop: Loop) -> None:
    standin = next(process.pid for process in loop.sandbox.status() if process.owner == "hypershift-standin")
    os.kill(standin, signal.SIGSTOP)  # a control plane that takes its time
    try:
        loop.orders.place("steps", nodes={"fc430": 2}, template="acme.site.careful")
        until(lambda: loop.orders.status("steps").get("configVersion"), "the order is carried out", 120)
        until(lambda: not loop.engine.playbooks(), "the run has ended")
        assert loop.orders.status("steps")["phase"] == "Progressing"
        assert loop.orders.condition("TemplateApplied", "steps")["reason"] == "PostInstallPending"
    finally:
        os.kill(standin, signal.SIGCONT)
    loop.until_phase("Ready", "steps")
    assert loop.engine.actions(loop.full("steps")) == ["provision", "post_install"]
    assert loop.orders.lease("steps")["leaseTransitions"] == 2


@pytest.mark.usefixtures("flaky")
def test_a_cluster_that_degrades_says_so_and_comes_back_and_a_site_hears_of_each_once(loop: Loop) -> None:
    def told() -> list[str]:
        return [line for line in loop.engine.said(r"^(?:\*\* .*)?((?:Ready|Degraded): .*)$") if loop.full("well") in line]

    loop.orders.place("well", nodes={"fc430": 1})
    loop.until_phase("Ready", "well")
    until(lambda: len(told()) == 1, "a site hears of it")
    place = ("hostedcluster", "well", "-n", loop.orders.working("well"))
    loop.hub.kubectl("annotate", *place, f"{FAULT}=degraded")
    loop.until_phase("Degraded", "well")
    until(lambda: len(told()) == 2, "a site hears of it")
    loop.hub.kubectl("annotate", *place, f"{FAULT}-")
    loop.until_phase("Ready", "well")
    loop.orders.place("other", nodes={"fc430": 1})
    loop.until_phase("Ready", "other")
    assert told() == [f"Ready: {loop.full('well')}", f"Degraded: {loop.full('well')} (ClusterDegraded)", f"Ready: {loop.full('well')}"]
    assert loop.engine.actions(loop.full("well")) == ["provision"]


@pytest.mark.usefixtures("flaky")
def test_a_hosted_cluster_deleted_by_hand_is_made_again(loop: Loop) -> None:
    loop.orders.place("lost", nodes={"fc430": 1})
    loop.until_phase("Ready", "lost")
    first = loop.hosted_cluster("lost")
    loop.hub.kubectl("delete", "hostedcluster", "lost", "-n", loop.orders.working("lost"))
    until(lambda: (loop.hosted_cluster("lost") or first)["metadata"]["uid"] != first["metadata"]["uid"], "another is made")  # type: ignore[index]
    loop.until_phase("Ready", "lost")


@pytest.mark.usefixtures("flaky")
def test_a_spec_that_failed_is_tried_at_once_when_it_changes(loop: Loop) -> None:
    (loop.folder / "broken-hasty").touch()
    loop.orders.place("hasty", nodes={"fc430": 1}, template="acme.site.careful")
    loop.until_phase("Failed", "hasty")
    failure = loop.orders.status("hasty")["failure"]
    assert failure["reason"] == "TaskFailed" and "The site is broken" in failure["message"] and failure["retryable"]
    later = {"status": {"failure": {"nextAttempt": "2099-01-01T00:00:00Z"}}}
    loop.orders.patch(later, "hasty", "--subresource=status")
    (loop.folder / "broken-hasty").unlink()
    loop.orders.place("hasty", nodes={"fc430": 2}, template="acme.site.careful")
    loop.until_phase("Ready", "hasty")
    assert "failure" not in loop.orders.status("hasty")
    assert loop.engine.actions(loop.full("hasty")).count("provision") == 2


@pytest.mark.usefixtures("flaky")
def test_an_order_that_cannot_be_carried_out_waits_for_its_tenant(loop: Loop) -> None:
    loop.orders.place("wrong", nodes={"no-such-class": 1})
    loop.until_phase("Failed", "wrong")
    status = loop.orders.status("wrong")
    assert status["failure"]["retryable"] is False and "no-such-class" in loop.orders.condition("Accepted", "wrong")["message"]
    loop.orders.place("wrong", nodes={"fc430": 1})
    loop.until_phase("Ready", "wrong")


@pytest.mark.usefixtures("flaky")
def test_a_run_that_was_killed_is_noticed_by_its_lock_and_done_again(loop: Loop) -> None:
    loop.orders.place("gated-kill", nodes={"fc430": 1})
    until(lambda: loop.here("gated-kill"), "a run holds the lock", 120)
    for process in loop.engine.playbooks():
        with contextlib.suppress(ProcessLookupError):  # some end with the first
            os.kill(process, signal.SIGKILL)
    assert loop.orders.status("gated-kill")["phase"] == "Progressing"
    loop.go_on("gated-kill")
    until(lambda: not loop.engine.processes("lease_renewer"), "whoever renews the lock ends with its run")
    loop.orders.patch_lease({"renewTime": PAST}, "gated-kill")  # as if its time had passed
    loop.until_phase("Ready", "gated-kill")
    assert loop.engine.actions(loop.full("gated-kill")) == ["provision", "provision"]
    assert loop.orders.lease("gated-kill")["leaseTransitions"] == 2


@pytest.mark.usefixtures("flaky")
def test_an_order_that_is_deleted_while_it_is_provisioned_goes_away(loop: Loop) -> None:
    loop.orders.place("gated-delete", nodes={"fc430": 1})
    until(lambda: loop.here("gated-delete"), "a run holds the lock", 120)
    loop.hub.kubectl("delete", loop.orders.kind, "gated-delete", "-n", loop.orders.namespace, "--wait=false")
    until(lambda: loop.orders.status("gated-delete").get("phase") == "Deleting", "the order shows it")
    assert loop.engine.actions(loop.full("gated-delete")) == ["provision"]
    loop.go_on("gated-delete")
    loop.until_gone("gated-delete")
    assert set(loop.engine.actions(loop.full("gated-delete"))[1:]) == {"delete"}


@pytest.mark.usefixtures("flaky")
def test_a_namespace_that_is_deleted_with_orders_in_it_goes_away(loop: Loop) -> None:
    """No lock can be taken in it any more."""
    with fresh_namespace(loop.hub) as namespace:
        orders = Orders(loop.hub, namespace, loop.folder)
        orders.place("inside", nodes={"fc430": 1})
        until(lambda: orders.status("inside").get("phase") == "Ready", f"it is Ready; the log is {loop.engine.log}", 180)
        loop.hub.kubectl("delete", "namespace", namespace, "--wait=false")
        until(lambda: loop.hub.get("namespace", namespace) is None, f"all of it is gone; the log is {loop.engine.log}", 300)
        assert loop.hub.get("namespace", orders.working("inside")) is None


@pytest.mark.usefixtures("flaky")
def test_what_is_not_managed_is_left_alone(loop: Loop) -> None:
    state = f"{loop.orders.group}/management-state"
    loop.orders.place("manual", nodes={"fc430": 1}, annotations={state: "manual"})
    loop.orders.place("unmanaged", nodes={"fc430": 1}, annotations={state: "unmanaged"})
    until(lambda: loop.orders.status("manual").get("phase") == "Progressing", "the status is shown")
    loop.orders.place("managed", nodes={"fc430": 1})
    loop.until_phase("Ready", "managed")
    assert loop.orders.status("unmanaged") == {}
    assert loop.engine.actions(loop.full("manual")) == loop.engine.actions(loop.full("unmanaged")) == []
    loop.orders.patch({"metadata": {"annotations": {state: None}}}, "manual")
    loop.until_phase("Ready", "manual")


def test_a_failure_is_tried_again_when_its_time_has_come_and_not_before(loop: Loop, flaky: dict[str, object]) -> None:
    loop.until_phase("Ready", "flaky")
    failure = flaky["failure"]
    assert isinstance(failure, dict) and failure["attempts"] == 1
    # What comes after the second attempt is not told apart: another test kills all runs there are.
    log = loop.engine.said(rf"^(\S+ \S+),\d+ - .*controller - INFO - provision of .*{loop.full('flaky')}")
    started = parse_time(log[1])
    next_attempt = parse_time(failure["nextAttempt"])
    assert started and next_attempt and started >= next_attempt


def test_drift_is_repaired_at_the_resync_also_after_a_restart(loop: Loop) -> None:
    """Both what others see of a cluster and what only the account in its namespace needs."""
    loop.engine.stop()
    done = loop.engine.actions(loop.full("other"))
    spec = json.dumps({"spec": {"release": {"image": NEXT_RELEASE}}})
    loop.hub.kubectl("patch", "hostedcluster", "well", "-n", loop.orders.working("well"), "--type=merge", "-p", spec)
    loop.hub.kubectl("delete", "rolebinding", "cloudkit", "-n", loop.orders.working("well"))
    for name in ("gated-kill", "hasty", "wrong", "other", "lost", "manual", "managed", "flaky", "steps"):
        loop.orders.patch({"metadata": {"annotations": {f"{loop.orders.group}/management-state": "manual"}}}, name)
    with running(Engine(loop.hub, loop.folder, source={"resync": 4})) as engine:
        until(lambda: loop.hub.get("rolebinding", "cloudkit", "-n", loop.orders.working("well")), "the account may work again", 90)
        until(lambda: loop.hosted_cluster("well")["spec"]["release"]["image"] == RELEASE, "the release is as ordered again")  # type: ignore[index]
        assert engine.actions(loop.full("other")) == done, "what is managed by hand is left alone"
    assert loop.orders.status("well")["phase"] == "Ready"


def test_an_order_that_is_deleted_is_taken_away_with_all_that_was_made_for_it(loop: Loop) -> None:
    with running(Engine(loop.hub, loop.folder, str(EXAMPLE))) as engine:
        loop.hub.kubectl("delete", loop.orders.kind, "well", "-n", loop.orders.namespace, "--wait=false")
        loop.until_gone("well")
        assert set(engine.actions(loop.full("well"))) >= {"delete"}
        until(lambda: engine.metric("openfleet_orders_events_total", action="deleted") == 1, "its end is told once")
