"""Orders that cannot be carried out, and runs that go wrong: one message for people, on the terminal and on the order, and no mess."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError

from ..support.orders import GROUP, Orders

LONG = "x" * 200_000
FAULTY = """
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider


class ClusterProvider(Provider):
    TYPE = "acme.site.faulty"
    create = update = delete = lambda self, *given: None

    FAULT
"""
BAD: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "unknown template": ({"template": "ocp_4_17_smal"}, "UnknownTemplate", ["ocp_4_17_smal", "ocp_4_17_small"]),
    "template of another collection": ({"template": "acme.none.small"}, "UnknownTemplate", ["acme.none.small"]),
    "wrong type": ({"base_domain": ["a"]}, "InvalidOrder", ["base_domain"]),
    "wrong choice": ({"control_plane_availability": "Often"}, "InvalidOrder", ["Often", "SingleReplica", "HighlyAvailable"]),
    "unknown parameter": ({"relase_image": "x"}, "InvalidOrder", ["relase_image", "release_image"]),
    "missing parameter": ({"raw_parameters": "{}"}, "InvalidOrder", ["pull_secret"]),
    "not JSON": ({"raw_parameters": '{"pull_secret": oops}'}, "InvalidOrder", ["JSON"]),
    "not one JSON object": ({"raw_parameters": '{"a": 1} {"b": 2}'}, "InvalidOrder", ["JSON"]),
    "disallowed class": ({"nodes": {"gpu9000": 1}}, "InvalidOrder", ["gpu9000", "fc430, fc640, fc830"]),
    "too many nodes": ({"nodes": {"fc430": 2_000_000_000}}, "InvalidOrder", ["2000000000", "1000"]),
    "several mistakes": ({"base_domain": 1, "nope": 1, "nodes": {"tiny": 5000}}, "InvalidOrder", ["nope", "tiny", "5000"]),
    "a very long parameter": ({LONG: LONG[:10]}, "InvalidOrder", ["xxx"]),
    "a very long value": ({"control_plane_availability": LONG}, "InvalidOrder", ["control_plane_availability"]),
}


def test_orders_that_do_not_fit_their_template_are_refused_before_anything_is_made(orders: Orders) -> None:
    """All in one run, with a good one among them: it is made whatever is wrong with the others."""
    names = {case: f"bad-{number}" for number, case in enumerate(BAD)}
    for case, (order, _reason, _words) in BAD.items():
        orders.place(names[case], **order)
    orders.place("good", nodes={"fc430": 1})
    chosen = [f"{orders.namespace}/{name}" for name in [*names.values(), "good"]]
    run = orders.play("create_cluster", None, cluster_orders=chosen)
    assert run.code != 0
    for case, (_order, reason, words) in BAD.items():
        name = names[case]
        status, accepted = orders.status(name), orders.condition("Accepted", name)
        message = status["failure"]["message"]
        assert (status["phase"], status["failure"]["reason"]) == ("Failed", reason), case
        assert status["failure"]["retryable"] is False and "nextAttempt" not in status["failure"], case
        assert (accepted["status"], accepted["message"]) == ("False", message), case
        assert not [word for word in words if word not in message] and len(message) < 1500, (case, message)
        assert message in run.output.replace('\\"', '"').replace("\\\\", "\\"), case
        assert orders.hub.get("namespace", orders.working(name)) is None, case
        assert "finalizers" not in orders.get(name)["metadata"], case
        assert "holderIdentity" not in orders.lease(name), case
    assert orders.names("good") and orders.status("good")["phase"] in ("Progressing", "Ready")


@pytest.mark.parametrize(
    "order",
    [
        {"nodes": {"fc430": 0}},
        {"nodes": {"fc430": -1}},
        {"nodes": {"fc430": 2**31}},
        {"nodes": {"": 1}},
        {"raw_parameters": "[]"},
        {"raw_parameters": "not JSON"},
        {"raw_parameters": json.dumps({"pull_secret": "x" * 300_000})},
        {"template": "no/template"},
        {"name": "a" * 64},
        {"name": "Demo"},
    ],
    ids=["zero", "negative", "huge", "no class", "list", "no JSON", "300 kB", "template", "long name", "capital"],
)
def test_what_no_order_may_hold_is_refused_by_the_api_itself(orders: Orders, order: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"invalid|Too long|too long|Invalid"):
        orders.place(**order)


def test_a_name_of_63_characters_is_carried_out_and_deleted(orders: Orders) -> None:
    name = "a" + "-" * 61 + "z"
    orders.place(name, nodes={"fc430": 1})
    orders.create(name)
    assert len(orders.working(name)) <= 63
    orders.delete(name)
    assert orders.is_gone(name)


def test_an_order_that_is_corrected_is_carried_out(orders: Orders) -> None:
    orders.place(nodes={"gpu9000": 1})
    assert orders.play("create_cluster").code != 0
    orders.place(nodes={"fc430": 1})
    orders.create()
    assert "failure" not in orders.status() and orders.condition("Accepted")["status"] == "True"


def test_a_spoilt_change_leaves_the_running_cluster_as_it_is(orders: Orders) -> None:
    orders.place(nodes={"fc430": 1})
    orders.create()
    orders.place(nodes={"gpu9000": 1})
    assert orders.play("create_cluster").code != 0
    assert orders.status()["phase"] == "Failed"
    assert orders.pools() == {"fc430": 1}


def test_a_namespace_of_somebody_else_is_not_taken(orders: Orders) -> None:
    orders.hub.kubectl("create", "namespace", orders.working())
    orders.place(nodes={"fc430": 1})
    run = orders.play("create_cluster")
    assert run.code != 0 and orders.working() in run.output
    assert orders.status()["failure"]["reason"] == "NamespaceTaken"
    assert orders.objects() == []
    orders.hub.kubectl("delete", "namespace", orders.working(), "--wait=false")


# Runs that go wrong

BROKEN = """
- name: Ask the inventory of the site
  ansible.builtin.fail:
    msg: The inventory has no rack 7.
"""


def test_a_template_with_a_bug_ends_on_the_order_with_task_and_message(orders: Orders) -> None:
    template = orders.template("broken", install=BROKEN)
    orders.place(template=template, nodes={"fc430": 1})
    run = orders.play("create_cluster")
    assert run.code != 0 and "The inventory has no rack 7." in run.output
    status = orders.status()
    assert status["phase"] == "Failed"
    failure = status["failure"]
    assert failure["task"] == "Ask the inventory of the site" and failure["message"].endswith("The inventory has no rack 7.")
    assert failure["retryable"] and failure["attempts"] == 1 and failure["nextAttempt"]
    assert orders.condition("TemplateApplied")["status"] == "False"
    assert "holderIdentity" not in orders.lease()

    assert orders.play("create_cluster").code != 0
    assert orders.status()["failure"]["attempts"] == 2
    (orders.folder / "collections/ansible_collections/acme/site/roles/broken/tasks/install.yml").unlink()
    orders.create()
    assert "failure" not in orders.status()
    orders.delete()
    assert orders.is_gone()


@pytest.mark.parametrize(
    "tasks",
    [
        "- name: Use a name that is not there\n  ansible.builtin.debug:\n    msg: '{{ nowhere.to.be.found }}'\n",
        "- name: Use a module that is not there\n  acme.site.no_such_module:\n",
        "- name: Not even YAML: [\n",
    ],
    ids=["variable", "module", "syntax"],
)
def test_other_bugs_of_a_template_reach_the_order_too(orders: Orders, tasks: str) -> None:
    orders.place(template=orders.template("broken", install=tasks), nodes={"fc430": 1})
    assert orders.play("create_cluster").code != 0
    status = orders.status()
    assert status["phase"] == "Failed" and status["failure"]["message"] and status["failure"]["task"]
    assert "holderIdentity" not in orders.lease()


UNREADABLE = "- name: Not even YAML: [\n"
INCLUDES = {
    "role": "- name: Include\n  ansible.builtin.include_role:\n    name: acme.site.unreadable\n",
    "entry": "- name: Include\n  ansible.builtin.include_role:\n    name: acme.site.readable\n    tasks_from: worse\n",
    "file": "- name: Include\n  ansible.builtin.include_tasks: more/first.yml\n",
    "nowhere": "- name: Include\n  ansible.builtin.include_role:\n    name: acme.site.missing\n",
    "nothing": "- name: Include\n  ansible.builtin.include_tasks: nothing.yml\n",
}


def test_what_a_template_includes_and_cannot_be_read_stops_no_other_order(orders: Orders) -> None:
    orders.role("unreadable", {"tasks/main.yml": UNREADABLE})
    orders.role("readable", {"tasks/main.yml": "[]\n", "tasks/worse.yml": UNREADABLE})
    for name, tasks in INCLUDES.items():
        template = orders.template(name, install=f"- name: Deep inside\n  block:\n    {tasks.replace(chr(10), chr(10) + '    ')}\n")
        orders.place(name, template=template, nodes={"fc430": 1})
    # Beside the file that includes it, and not where the first file is.
    second = "- name: Further\n  ansible.builtin.include_tasks:\n    file: second.yml\n"
    orders.role("file", {"tasks/more/first.yml": second, "tasks/more/second.yml": UNREADABLE})
    orders.place("good", nodes={"fc430": 1})
    chosen = [f"{orders.namespace}/{name}" for name in [*INCLUDES, "good"]]
    run = orders.play("create_cluster", None, cluster_orders=chosen)
    assert run.code != 0
    reasons = {name: orders.status(name)["failure"]["reason"] for name in INCLUDES}
    assert reasons == dict.fromkeys(("role", "entry", "file"), "BrokenTemplate") | dict.fromkeys(("nowhere", "nothing"), "TaskFailed")
    for name in ("role", "entry", "file"):
        assert orders.hub.get("namespace", orders.working(name)) is None, name
    for name in ("nowhere", "nothing"):
        assert orders.status(name)["failure"]["task"] and orders.status(name)["phase"] == "Failed"
        assert "holderIdentity" not in orders.lease(name)
    assert orders.names("good")
    orders.until_phase("Ready", "good")


def test_one_failing_template_stops_no_other_order(orders: Orders) -> None:
    """Nor does one that Ansible cannot even read."""
    orders.place("bad", template=orders.template("broken", install=BROKEN), nodes={"fc430": 1})
    orders.place("worse", template=orders.template("unreadable", install="- name: Not even YAML: [\n"), nodes={"fc430": 1})
    orders.place("first", nodes={"fc430": 1})
    orders.place("second", nodes={"fc430": 2})
    run = orders.play("create_cluster", None, cluster_orders=[f"{orders.namespace}/{name}" for name in ("first", "bad", "worse", "second")])
    assert run.code != 0
    assert run.recap[f"{orders.namespace}/bad"]["failed"] == 1
    assert [run.recap[f"{orders.namespace}/{name}"]["failed"] for name in ("first", "second")] == [0, 0]
    assert orders.status("bad")["phase"] == "Failed"
    assert orders.status("worse")["failure"]["reason"] == "BrokenTemplate"
    for name in ("first", "second"):
        orders.until_phase("Ready", name)


def test_an_api_that_is_not_there_is_one_clear_message(orders: Orders) -> None:
    config = yaml.safe_load(orders.hub.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    nowhere = orders.folder / "nowhere"
    nowhere.write_text(yaml.safe_dump(config))
    for playbook in ("create_cluster", "delete_cluster", "sync_status"):
        run = orders.play(playbook, kubeconfig=nowhere)
        assert run.code != 0 and "https://127.0.0.1:9" in run.output and "Traceback" not in run.output


def test_an_order_that_is_not_there_is_named(orders: Orders) -> None:
    run = orders.play("create_cluster", "nobody")
    assert run.code != 0 and f"There is no ClusterOrder {orders.namespace}/nobody." in run.output
    assert not orders.lease("nobody")


@pytest.mark.parametrize("state", ["unmanaged", "manual"])
def test_orders_that_are_not_to_be_managed_are_left_alone(orders: Orders, state: str) -> None:
    orders.place(nodes={"fc430": 1}, annotations={f"{GROUP}/management-state": state})
    before = orders.get()
    run = orders.play("create_cluster").well()
    assert state in run.output and run.changed == 0
    assert orders.get() == before and not orders.lease()
    orders.play("sync_status").well()
    assert ("status" in orders.get()) == (state == "manual")
    assert orders.hub.get("namespace", orders.working()) is None


def test_a_template_may_be_made_of_several_files(orders: Orders) -> None:
    """What is read before the run is read as the run does it: from the role's own folder, and without its variables."""
    more = {
        "meta/main.yml": "dependencies: []\n",
        "tasks/more.yml": "- name: Do more\n  ansible.builtin.debug:\n    msg: more was done\n",
    }
    install = """
- name: Do what is in another file
  ansible.builtin.import_tasks: more.yml
- name: Do it once more, by a name from the order
  ansible.builtin.include_tasks: "{{ cluster_order.metadata.name }}.yml"
- name: Go on as the base does
  ansible.builtin.import_role:
    name: openfleet.clusters.ocp_4_17_small
    tasks_from: install
"""
    template = orders.template("several", install=install)
    orders.role("several", more | {"tasks/demo.yml": more["tasks/more.yml"]})
    orders.place(template=template, nodes={"fc430": 1})
    assert orders.create().output.count('"msg": "more was done"') == 2


def test_what_only_a_change_of_the_order_mends_is_not_tried_again(orders: Orders) -> None:
    install = """
- name: Ask for what the provider does not know
  openfleet.clusters.cluster:
    cluster_order: "{{ cluster_order }}"
    lock: "{{ cluster_lock }}"
    settings: {nonsense: "{{ template_parameters.base_domain }}"}
"""
    orders.place(template=orders.template("nonsense", install=install), nodes={"fc430": 1}, base_domain="a.example.com")
    assert orders.play("create_cluster").code != 0
    failure = orders.status()["failure"]
    assert (failure["reason"], failure["retryable"], failure["task"]) == ("Invalid", False, "Ask for what the provider does not know")
    assert "nonsense" in failure["message"] and "nextAttempt" not in failure
    assert "demo" not in str(orders.play("create_cluster", None).well().recap)


@pytest.mark.parametrize("fault", ["def status(self, spec):\n        return int('hunter2')", "oops oops"], ids=["in a call", "in its file"])
def test_a_provider_with_a_fault_troubles_its_own_orders_only(orders: Orders, fault: str) -> None:
    place = orders.folder / "collections/ansible_collections/acme/site/plugins/module_utils/providers/faulty.py"
    place.parent.mkdir(parents=True)
    place.write_text(FAULTY.replace("FAULT", fault), encoding="utf-8")
    meta = "title: Faulty\ndescription: Has a fault.\nprovider: acme.site.faulty\nallowed_resource_classes: [fc430]\n"
    options = "argument_specs: {install: {options: {}}, delete: {options: {}}}\n"
    role = orders.role("faulty", {"meta/template.yml": meta, "meta/argument_specs.yml": options})
    orders.role("faulty", {f"tasks/{entry}.yml": "[]\n" for entry in ("install", "delete")})
    orders.place("bad", template=role, raw_parameters="{}")
    orders.place("good", nodes={"fc430": 1})
    chosen = [f"{orders.namespace}/{name}" for name in ("bad", "good")]
    run = orders.play("create_cluster", None, cluster_orders=chosen, cluster_wait_timeout=60)
    assert orders.status("good")["phase"] == "Ready", run.output
    orders.play("sync_status", None, cluster_orders=chosen).well()
    shown = str(orders.status("bad")) + run.output
    assert "acme.site.faulty has a fault of its own" in shown and "faulty.py" in shown and "hunter2" not in shown
    assert "holderIdentity" not in orders.lease("bad")


# Where orders come from


def test_events_and_webhooks_name_orders(orders: Orders) -> None:
    orders.place("one")
    orders.place("two")
    orders.place("three")
    for event in (
        {"action": "provision", "order": {"namespace": orders.namespace, "name": "one"}},
        {"action": "provision", "orders": [{"namespace": orders.namespace, "name": "two", "uid": "of an earlier order of that name"}]},
        {"action": "provision", "orders": [{"namespace": orders.namespace, "name": "two", "uid": orders.get("two")["metadata"]["uid"]}]},
        {"payload": orders.get("three"), "meta": {"endpoint": "create-hosted-cluster"}},
    ):
        url = "https://aap.example.com/4711"
        orders.play("create_cluster", None, ansible_eda={"event": event}, awx_job_id=4711, cluster_job_url=url).well()
        if "earlier" in str(event):
            assert orders.status("two") == {}
    for name in ("one", "two", "three"):
        orders.until_phase("Ready", name)
        job = orders.status(name)["job"]
        assert (job["id"], job["url"]) == ("4711", "https://aap.example.com/4711") and job["startedAt"]


def test_a_payload_that_names_no_order_is_refused(orders: Orders) -> None:
    for payload in ({}, {"metadata": {"name": "../../secrets", "namespace": "kube-system"}}, {"metadata": {"name": "demo"}}):
        run = orders.play("create_cluster", None, ansible_eda={"event": {"payload": payload}})
        assert run.code != 0 and "An order is named by its name and its namespace" in run.output


def test_template_syntax_in_an_event_is_text(orders: Orders) -> None:
    """Rules engines give events in a file of variables, whose strings Ansible takes for templates."""
    orders.place()
    touched, given = orders.folder / "touched", orders.folder / "event.json"
    hostile = "{{ lookup('pipe', 'touch " + str(touched) + "') }}"
    payload = orders.get() | {"hostile": hostile, hostile: hostile}
    payload["metadata"]["annotations"] = {"hostile": hostile}
    for event in ({"payload": payload}, {"order": payload["metadata"], "reason": hostile, "uid": hostile}):
        given.write_text(json.dumps({"ansible_eda": {"event": event}}), encoding="utf-8")
        for playbook in ("sync_status", "create_cluster"):
            orders.play(playbook, None, "-e", f"@{given}").well()
    assert not touched.exists() and orders.status()["configVersion"]
    given.write_text(json.dumps({"ansible_eda": hostile}), encoding="utf-8")
    run = orders.play("create_cluster", None, "-e", f"@{given}")
    assert run.code != 0 and "ansible_eda" in run.output and not touched.exists()


def test_without_a_name_a_run_takes_up_all_that_need_it(orders: Orders) -> None:
    orders.place("one")
    orders.place("two")
    orders.create("two")
    run = orders.play("create_cluster", None).well()
    assert f"{orders.namespace}/one" in run.recap and f"{orders.namespace}/two" not in run.recap
    orders.until_phase("Ready", "one")


# Secrets


def test_no_secret_is_printed_cached_or_left_behind(orders: Orders) -> None:
    words = ["pullsecret4711word", "idpsecret4711word"]
    pull_secret = json.dumps({"auths": {"registry.example.com": {"auth": words[0]}}})
    orders.place(
        template="ocp_4_17_small_idp",
        nodes={"fc430": 1},
        pull_secret=pull_secret,
        idp_issuer="https://id.example.com",
        idp_client_id="me",
        idp_client_secret=words[1],
    )
    cache = orders.folder / "facts"
    environment = {
        "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(cache),
        "ANSIBLE_RETRY_FILES_ENABLED": "1",
        "ANSIBLE_RETRY_FILES_SAVE_PATH": str(orders.folder / "retry"),
        "ANSIBLE_LOG_PATH": str(orders.folder / "ansible.log"),
        "ANSIBLE_KEEP_REMOTE_FILES": "1",
    }
    outputs = [orders.create("demo", "-vvvv", "--diff", environment=environment).output]
    secret = orders.hub.get("secret", "demo-idp-client", "-n", orders.working())
    assert base64.b64decode(secret["data"]["clientSecret"]).decode() == words[1]
    kubeconfig = orders.hub.get("secret", "demo-admin-kubeconfig", "-n", orders.working())["data"]["kubeconfig"]
    outputs.append(orders.play("post_install", "demo", "-vvvv", environment=environment).output)
    orders.place(
        template="ocp_4_17_small_idp", pull_secret=pull_secret, idp_issuer="x", idp_client_id=5, idp_client_secret=[words[1]], nope=1
    )
    outputs.append(orders.play("create_cluster", "demo", "-vvvv", environment=environment).output)
    outputs.append(orders.delete("demo", "-vvvv", environment=environment).output)
    files = [path for path in orders.folder.rglob("*") if path.is_file()]
    texts = outputs + [path.read_text(encoding="utf-8", errors="replace") for path in files]
    for word in [*words, kubeconfig[100:160]]:
        for form in forms(word):
            assert not [text for text in texts if form in text], form


NO_LOG = {
    "task": """
- name: Log in
  ansible.builtin.fail:
    msg: The password pass4711word is wrong.
  no_log: true
""",
    "by a variable, in a loop": """
- name: Log in
  ansible.builtin.fail:
    msg: The password {{ item }} is wrong.
  loop: [pass4711word]
  no_log: "{{ cluster_order.metadata.name == 'demo' }}"
""",
    "block": """
- name: Log in
  no_log: true
  block:
    - name: Ask
      ansible.builtin.command: "false pass4711word"
      changed_when: false
""",
}


@pytest.mark.parametrize("tasks", NO_LOG.values(), ids=NO_LOG)
def test_what_a_task_with_no_log_says_when_it_fails_is_not_repeated(orders: Orders, tasks: str) -> None:
    orders.place(template=orders.template("login", install=tasks), nodes={"fc430": 1})
    before = set(orders.folder.rglob("*"))
    run = orders.play("create_cluster", "demo", "-vvvv")
    assert run.code != 0
    failure = orders.status()["failure"]
    assert failure["task"] in ("Log in", "Ask") and "no_log" in failure["message"]
    assert failure["message"] in run.output
    # Of a task that fails Ansible itself shows the message, whatever its no_log is; nobody else does.
    said = [line for line in run.output.splitlines() if "pass4711word" in line]
    assert not [line for line in said if not line.startswith("[ERROR]: Task failed: Action failed: ")]
    artifacts = [path.read_text(errors="replace") for path in set(orders.folder.rglob("*")) - before if path.is_file()]
    for told in (json.dumps(orders.get()), *artifacts):
        assert "pass4711word" not in told


def forms(word: str) -> list[str]:
    """The word, and what of it is the same in base64 wherever it begins."""
    encoded = [base64.b64encode(b"x" * shift + word.encode()).decode()[4:-4] for shift in range(3)]
    return [word, *encoded]


# Hooks


def hook(orders: Orders, word: str) -> str:
    tasks = f"""
- name: Note {word}
  ansible.builtin.lineinfile:
    path: {orders.folder / "notes"}
    line: "{word} {{{{ cluster_order.metadata.name | default('-') }}}} {{{{ cluster_working_namespace }}}}"
    create: true
    mode: "0600"
"""
    return orders.role(f"note_{word}", {"tasks/main.yml": tasks})


def test_hooks_of_a_site_run_around_the_template(orders: Orders) -> None:
    kinds = ["pre_install", "post_install", "pre_delete", "post_delete"]
    hooks = {kind: [hook(orders, f"{kind}_a"), hook(orders, f"{kind}_b")] for kind in kinds}
    tasks_of_its_own = """
- name: Note template
  ansible.builtin.lineinfile:
    path: {path}
    line: template {entry}
- name: Run the tasks that the template extends
  ansible.builtin.include_role:
    name: openfleet.clusters.{role}
    tasks_from: {entry}
"""
    roles = {"install": "ocp_4_17_small", "delete": "default_delete"}
    tasks = {entry: tasks_of_its_own.format(path=orders.folder / "notes", entry=entry, role=role) for entry, role in roles.items()}
    orders.place(template=orders.template("accepted", **tasks), nodes={"fc430": 1})
    orders.create(cluster_hooks=hooks)
    orders.play("delete_cluster", cluster_hooks=hooks).well()
    where = f"demo {orders.working()}"
    assert (orders.folder / "notes").read_text().splitlines() == [
        f"pre_install_a {where}",
        f"pre_install_b {where}",
        "template install",
        f"post_install_a {where}",
        f"post_install_b {where}",
        f"pre_delete_a {where}",
        f"pre_delete_b {where}",
        "template delete",
        f"post_delete_a {where}",
        f"post_delete_b {where}",
    ]


def test_a_failing_hook_ends_on_the_order(orders: Orders) -> None:
    orders.place(nodes={"fc430": 1})
    name = orders.role("failing", {"tasks/main.yml": BROKEN})
    assert orders.play("create_cluster", cluster_hooks={"pre_install": [name]}).code != 0
    assert orders.status()["failure"]["task"] == "Ask the inventory of the site"
    assert orders.hub.get("hostedcluster", "demo", "-n", orders.working()) is None


def test_an_order_stays_until_what_failed_after_its_cluster_was_gone_has_succeeded(orders: Orders) -> None:
    """Say, a hook that gives back addresses: nothing else would ever run it again."""
    broken = orders.folder / "broken"
    tasks = f"- name: Give back the addresses\n  ansible.builtin.assert:\n    that: not '{broken}' is exists\n"
    hooks = {"post_delete": [orders.role("addresses", {"tasks/main.yml": tasks})]}
    orders.place(nodes={"fc430": 1})
    orders.create()
    broken.touch()

    def gone() -> bool:
        assert orders.play("delete_cluster", cluster_hooks=hooks, cluster_wait_timeout=5, awx_job_id=4712).code != 0
        return orders.hub.get("hostedcluster", "demo", "-n", orders.working()) is None

    until(gone, "the cluster is gone")
    assert gone() and orders.get(), "the next run finds the cluster gone, and fails as well"
    status = orders.status()
    assert (status["failure"]["task"], status["job"]["id"]) == ("Give back the addresses", "4712")
    assert orders.hub.get("namespace", orders.working())
    broken.unlink()
    orders.delete(cluster_hooks=hooks)
    until(orders.is_gone, "all is gone")


@pytest.mark.parametrize(
    "files", [{"tasks/main.yml": UNREADABLE}, {"tasks/main.yml": INCLUDES["role"]}, {}], ids=["itself", "within", "none"]
)
def test_a_hook_that_cannot_be_read_is_said_before_anything_is_made(orders: Orders, files: dict[str, str]) -> None:
    orders.role("unreadable", {"tasks/main.yml": UNREADABLE})
    orders.place(nodes={"fc430": 1})
    name = orders.role("unsound", files)
    assert orders.play("create_cluster", cluster_hooks={"post_install": [name]}).code != 0
    failure = orders.status()["failure"]
    assert (failure["reason"], failure["retryable"]) == ("BrokenHook", True) and name in failure["message"]
    assert orders.hub.get("namespace", orders.working()) is None
    assert "holderIdentity" not in orders.lease()
    orders.role("unsound", {"tasks/main.yml": "[]\n"})
    orders.create(cluster_hooks={"post_install": name, "pre_delete": ["acme.site.nowhere"]})


def test_post_install_reaches_the_new_cluster(orders: Orders) -> None:
    """With what the cluster's own secret says; the order is Ready only after it."""
    tasks = f"""
- name: Write down where the new cluster is
  ansible.builtin.copy:
    content: "{{{{ cluster_kubeconfig.clusters[0].cluster.server }}}}"
    dest: {orders.folder / "server"}
    mode: "0600"
"""
    orders.place(template=orders.template("finished", post_install=tasks), nodes={"fc430": 1})
    orders.play("create_cluster").well()
    until(lambda: orders.hub.get("secret", "demo-admin-kubeconfig", "-n", orders.working()), "the kubeconfig of the new cluster")
    orders.play("sync_status").well()
    assert orders.status()["phase"] == "Progressing"
    assert orders.condition("TemplateApplied")["reason"] == "PostInstallPending"
    orders.play("post_install", cluster_wait_timeout=60).well()
    assert orders.status()["phase"] == "Ready"
    secret = orders.hub.get("secret", "demo-admin-kubeconfig", "-n", orders.working())
    kubeconfig = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    assert (orders.folder / "server").read_text() == kubeconfig["clusters"][0]["cluster"]["server"]
