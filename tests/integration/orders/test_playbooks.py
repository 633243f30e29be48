"""The playbooks by `ansible-playbook`, for what only Ansible can show: variables, hosts, recap, check mode, diff, limit, and real kills."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy, Request
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd

from ..support.orders import CREATED, OTHER_GROUP, PULL_SECRET, RELEASE, Orders, Started


def test_an_order_of_the_other_api_group_becomes_a_cluster_and_is_deleted(orders: Orders) -> None:
    orders.hub.install_crds(load_crd(COLLECTION_CRDS / "clusterorders.yaml", OTHER_GROUP))
    others = Orders(orders.hub, orders.namespace, orders.folder, OTHER_GROUP)
    others.apply(nodes={"fc430": 2})
    run = others.create()
    assert run.recap[f"{others.namespace}/demo"]["changed"] == 1
    assert others.names() == CREATED
    others.delete()
    assert others.is_deleted()


def test_a_real_cluster_is_ordered_finished_inside_scaled_and_deleted(hub: Access, namespace: str, tmp_path: Path) -> None:
    """Here a real API server runs behind the HostedCluster: the kubeconfig that a template is given opens it."""
    orders = Orders(hub, namespace, tmp_path)
    tasks = f"""
- name: Keep how to reach the new cluster
  ansible.builtin.copy:
    content: "{{{{ cluster_kubeconfig | to_json }}}}"
    dest: {tmp_path / "inside"}
    mode: "0600"
  no_log: true
- name: Report a part that needs another run
  ansible.builtin.set_fact:
    cluster_infrastructure: {{dns: {{ready: false, reason: RecordsNotVisible, message: api.demo does not resolve yet.}}}}
"""
    template = orders.template("finished", post_install=tasks)
    orders.apply(template=template, nodes={"fc430": 2})
    orders.play("create_cluster").successful()
    hub.wait("hostedcluster/demo", "-n", orders.working(), "--for=condition=Available")
    orders.sync("demo")
    assert orders.status()["phase"] == "Progressing"
    assert orders.condition("TemplateApplied")["reason"] == "PostInstallPending"
    orders.play("post_install", cluster_wait_timeout=300).successful()
    assert orders.status()["phase"] == "Progressing"
    assert orders.condition("InfrastructureReady")["message"] == "dns: api.demo does not resolve yet."
    orders.run("post_install", "demo").finish()  # of a template that reports no part
    assert orders.status()["phase"] == "Ready" and "infrastructure" not in orders.status()
    inside = Access(tmp_path / "inside")
    assert inside.kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ") == 2
    assert orders.status()["apiURL"] in inside.kubectl("cluster-info").stdout

    orders.apply(template=template, nodes={"fc430": 3})
    orders.provision(wait=0)
    orders.run("post_install", "demo").finish(wait=300)  # what its template does is done already
    assert orders.status()["phase"] == "Ready"
    assert inside.kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ") == 3

    orders.remove()
    assert orders.is_deleted()
    assert "refused" in inside.kubectl("get", "nodes", check=False).stderr


def test_check_mode_predicts_the_recap_and_diff_shows_the_cluster_and_no_secret(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 2})
    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        predicted = orders.play("create_cluster", "demo", "--check", "--diff", kubeconfig=proxy.kubeconfig).successful()
    assert not [request for request in proxy.writes if "dryRun=All" not in request.path], proxy.writes
    # A limit is allowed if it keeps the hosts that orders become.
    run = orders.play("create_cluster", "demo", "--diff", "--limit", "localhost,cluster_orders").successful()
    assert predicted.recap == run.recap and run.changed > 0
    for output in (predicted.output, run.output):
        assert f"HostedCluster {orders.working()}/demo" in output
        assert RELEASE in output and '"replicas": 2' in output
        assert f"Secret {orders.working()}/demo-pull-secret" in output and "(hidden)" in output
        assert PULL_SECRET[-12:] not in output and base64.b64encode(PULL_SECRET.encode()).decode() not in output
    orders.apply(nodes={"fc430": 3})
    output = orders.play("create_cluster", "demo", "--diff").successful().output
    assert '-    "replicas": 2' in output and '+    "replicas": 3' in output
    assert f"Secret {orders.working()}" not in output

    orders.until_phase("Ready")
    assert orders.play("sync_status", "demo", "--check").successful().changed == 0
    orders.hold_cluster()  # so that nothing changes between a run and its prediction
    predicted = orders.play("delete_cluster", "demo", "--check").successful()
    run = orders.play("delete_cluster", "demo").successful()
    assert predicted.recap == run.recap and run.changed > 0
    orders.release_cluster()
    orders.remove()
    assert orders.is_deleted()


def test_a_limit_that_would_skip_the_templates_is_refused(orders: Orders) -> None:
    orders.apply()
    before = orders.get()
    run = orders.play("create_cluster", "demo", "--limit", "localhost")
    assert run.code != 0 and "leaves out the hosts that orders become" in run.output and orders.get() == before


def test_an_api_server_that_does_not_answer_is_one_clear_message(orders: Orders) -> None:
    config = yaml.safe_load(orders.hub.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (orders.folder / "nowhere").write_text(yaml.safe_dump(config))
    run = orders.play("create_cluster", kubeconfig=orders.folder / "nowhere")
    assert run.code != 0 and "https://127.0.0.1:9" in run.output and "Traceback" not in run.output


def test_template_syntax_in_an_event_is_text(orders: Orders) -> None:
    """Rules engines pass events in a file of variables, whose strings Ansible takes for templates."""
    orders.apply()
    touched, given = orders.folder / "touched", orders.folder / "event.json"
    hostile = "{{ lookup('pipe', 'touch " + str(touched) + "') }}"
    payload = orders.get() | {"hostile": hostile, hostile: hostile}
    payload["metadata"]["annotations"] = {"hostile": hostile}
    for event in ({"payload": payload}, {"order": payload["metadata"], "reason": hostile, "uid": hostile}):
        given.write_text(json.dumps({"ansible_eda": {"event": event}}), encoding="utf-8")
        playbook = "create_cluster" if "payload" in event else "sync_status"
        orders.play(playbook, None, "-e", f"@{given}", awx_job_id=4711, cluster_job_url="https://aap.example.com/4711").successful()
    status = orders.status()
    assert status["configVersion"] and (status["job"]["id"], status["job"]["url"]) == ("4711", "https://aap.example.com/4711")
    given.write_text(json.dumps({"ansible_eda": hostile}), encoding="utf-8")
    run = orders.play("create_cluster", None, "-e", f"@{given}")
    assert run.code != 0 and "ansible_eda" in run.output
    assert not touched.exists()


# Runs that are killed


def command(pid: int) -> str:
    """What the process was started as; nothing if it has ended meanwhile."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    return ""


def test_the_lock_of_a_killed_run_is_not_renewed_and_holds_until_it_expires(orders: Orders) -> None:
    gate, here, _resume = orders.gate()
    orders.apply(nodes={"fc430": 1})
    first = orders.start("create_cluster", cluster_hooks={"pre_install": [gate]}, awx_job_id=4711)
    until(here.exists, "the first run holds the lock")
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    until(lambda: not [pid for pid in first.processes() if "renewer" in command(pid)], "the renewer of the lock ends with its run")
    first.signal(signal.SIGKILL)
    assert "is held by" in orders.provision(wait=0).messages
    orders.expire_lock()
    orders.sync("demo")
    assert orders.status()["failure"]["reason"] == "RunLost" and "4711" in orders.status()["failure"]["message"]
    orders.provision()
    assert orders.names() == CREATED
    assert orders.lease()["leaseTransitions"] == 2


def test_a_deletion_that_was_killed_at_a_write_is_simply_run_again(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    started: list[Started] = []

    def kill(request: Request) -> None:
        if request.method == "DELETE" and "hostedclusters" in request.path:
            started[0].signal(signal.SIGKILL)
            raise ConnectionAbortedError

    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        proxy.before = kill
        started.append(orders.start("delete_cluster", kubeconfig=proxy.kubeconfig, cluster_wait_timeout=200))
        assert started[0].end().code == -signal.SIGKILL
    assert orders.hosted_cluster() and orders.lease()["holderIdentity"]
    orders.free_lock()
    orders.remove()
    assert orders.is_deleted()
