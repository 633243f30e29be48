"""The same loop with the generated templates on a stand-in for Automation Platform: its jobs are real runs, each found on its order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.faults import Fault
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.runner import PlaybookRunner
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import ROOT, Platform
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from ..support.automation_platform import environment_of, generated, labels_of
from ..support.engines import Engine, running
from ..support.orders import Orders
from ..support.platform_runs import Runs, poll_quickly


def test_generated_jobs_and_workflows_reconcile_orders_also_when_one_is_launched_twice(
    new_sandbox: Callable[..., Sandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll_quickly(monkeypatch)
    hub = Access(new_sandbox(status_only=True).kubeconfig())
    with fresh_namespace(hub) as namespace:
        orders = Orders(hub, namespace, tmp_path)
        orders.template("finished", post_install="[]\n")
        # Jobs run elsewhere, and reach the hub by the credential of their template.
        runner = PlaybookRunner(ROOT, {})
        platform = Platform(gateway=True, folder=tmp_path, runner=runner)
        with platform.serving() as url:
            Runs(platform, url).run(generated(url, hub.kubeconfig))
            activation = next(row for row in platform.eda_objects("activations") if row["rulebook_name"] == "cluster_fulfillment_aap.yml")
            assert activation["status"] == "running"
            engine = Engine(
                hub,
                tmp_path,
                f"openfleet.clusters.{Path(activation['rulebook_name']).stem}",
                environment={"EDA_JOB_TEMPLATE_REFRESH_DELAY": "0.5", "KUBECONFIG": str(tmp_path / "none")},
                source={"workflows": ["delete"]},
                hub_kubeconfig=str(hub.kubeconfig),
                **yaml.safe_load(activation["extra_var"]),
            )
            runner.environment = environment_of(engine.environment)
            engine.add_options("--controller-url", f"{url}/api/controller/", "--controller-token", platform.token())
            with running(engine):
                platform.faults.append(Fault("done-502", "POST", "/launch/"))
                orders.apply("demo", nodes={"fc430": 1}, template="acme.site.finished")
                until(lambda: orders.status("demo").get("phase") == "Ready", f"it is Ready; the log is {engine.log}", 600)
                create, finish = ("openfleet-create-cluster", False), ("openfleet-post-install", False)

                def names() -> list[tuple[str, bool]]:
                    return [(launch.template, launch.workflow) for launch in platform.launches]

                # The repeated launch may come before or after the next step; where it acquires the lock first, that is
                # asked for again.
                until(lambda: names().count(create) == 2, "the lost launch was repeated")
                assert set(names()) == {create, finish}
                twice = [launch for launch in platform.launches if (launch.template, launch.workflow) == create]
                assert not [launch for launch in platform.launches if "hub_kubeconfig" in launch.sent["extra_vars"]]
                event = twice[0].sent["extra_vars"]["ansible_eda"]["event"]
                assert event["action"] == "provision" and event["orders"][0]["name"] == "demo"
                # A search for the event's job by its label finds both.
                assert all(f"eda-event-uuid-{event['meta']['uuid']}" in labels_of(platform, launch) for launch in twice)
                job = orders.status("demo")["job"]
                ran = {launch.job: (launch.template, launch.workflow) for launch in platform.launches}
                assert ran[int(job["id"])] == finish and job["url"] == f"{url}/#/jobs/{job['id']}/details"
                clusters = hub.get("hostedclusters", "-A")["items"]
                assert len(clusters) == 1 and clusters[0]["metadata"]["generation"] <= 2, "the second launch changed nothing"

                hub.kubectl("delete", orders.kind, "demo", "-n", namespace, "--wait=false")
                until(lambda: orders.is_deleted("demo"), f"it is deleted; the log is {engine.log}", 600)
                assert {launch.workflow for launch in platform.launches if launch.template == "openfleet-delete-cluster"} == {True}
                assert engine.is_running
