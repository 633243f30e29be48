"""Templates, hooks and providers of a site in real playbook runs: whatever is wrong with one of them ends on its own orders."""

from __future__ import annotations

import base64
import json

from ..support.orders import Orders

FAILING = """
- name: Ask the inventory of the site
  ansible.builtin.fail:
    msg: The inventory has no rack 7.
"""
UNREADABLE = "- name: Not even YAML: [\n"
PASSWORD = "pass4711word"  # noqa: S105 - made up
NO_LOG = {
    "hidden-task": f"""
- name: Log in
  ansible.builtin.fail:
    msg: The password {PASSWORD} is wrong.
  no_log: true
""",
    "hidden-loop": f"""
- name: Log in
  ansible.builtin.fail:
    msg: The password {{{{ item }}}} is wrong.
  loop: [{PASSWORD}]
  no_log: "{{{{ cluster_order.metadata.name == 'hidden-loop' }}}}"
""",
    "hidden-block": f"""
- name: Log in
  no_log: true
  block:
    - name: Ask
      ansible.builtin.command: "false {PASSWORD}"
      changed_when: false
""",
}
INCLUDES = {
    "role": "- name: Include\n  ansible.builtin.include_role:\n    name: acme.site.unreadable_role\n",
    "missing-role": "- name: Include\n  ansible.builtin.include_role:\n    name: acme.site.missing\n",
    "missing-file": "- name: Include\n  ansible.builtin.include_tasks: nothing.yml\n",
}
# What Ansible finds out in the run ends on the order with the task; what it cannot even read is refused before.
IN_THE_RUN = {
    "failing": FAILING,
    "hanging": "- name: Hang\n  ansible.builtin.command: sleep 3000\n  changed_when: false\n",
    "variable": "- name: Use a name that does not exist\n  ansible.builtin.debug:\n    msg: '{{ nowhere.to.be.found }}'\n",
    "missing-role": INCLUDES["missing-role"],
    "missing-file": INCLUDES["missing-file"],
    **NO_LOG,
}
BEFORE_THE_RUN = {
    "syntax": UNREADABLE,
    "module": "- name: Use a module that does not exist\n  acme.site.no_such_module:\n",
    "role": INCLUDES["role"],
}
SEVERAL = """
- name: Do what is in another file
  ansible.builtin.import_tasks: more.yml
- name: Do it once more, by a name from the order
  ansible.builtin.include_tasks: "{{ cluster_order.metadata.name }}.yml"
- name: Run the tasks that the template extends
  ansible.builtin.import_role:
    name: openfleet.clusters.ocp_4_17_small
    tasks_from: install
"""
MORE = "- name: Do more\n  ansible.builtin.debug:\n    msg: more was done\n"


def test_every_fault_of_a_template_ends_on_its_own_order(orders: Orders) -> None:
    """All in one run, at the highest verbosity, between two good orders, one of them of a template made of several files."""
    orders.role("unreadable_role", {"tasks/main.yml": UNREADABLE})
    faults = IN_THE_RUN | BEFORE_THE_RUN
    for name, tasks in faults.items():
        orders.apply(name, template=orders.template(name.replace("-", "_"), install=tasks), nodes={"fc430": 1})
    orders.role("several", {"meta/main.yml": "dependencies: []\n", "tasks/more.yml": MORE, "tasks/several.yml": MORE})
    orders.apply("several", template=orders.template("several", install=SEVERAL), nodes={"fc430": 1})
    orders.apply("good", nodes={"fc430": 2})
    orders.apply("refused", template="no_such_template")
    before = set(orders.folder.rglob("*"))
    chosen = [f"{orders.namespace}/{name}" for name in ("several", *faults, "refused", "good")]
    run = orders.play("create_cluster", None, "-vvvv", cluster_orders=chosen, cluster_task_timeout=20)
    assert run.code != 0

    failures = {name: orders.status(name)["failure"] for name in [*faults, "refused"]}
    assert {name: failures[name]["reason"] for name in BEFORE_THE_RUN} == dict.fromkeys(BEFORE_THE_RUN, "BrokenTemplate")
    assert {name: failures[name]["reason"] for name in IN_THE_RUN} == dict.fromkeys(IN_THE_RUN, "TaskFailed")
    assert failures["refused"]["message"] in run.output.replace('\\"', '"')
    for name in BEFORE_THE_RUN:
        assert orders.hub.get("namespace", orders.working(name)) is None, name
    for name in faults:
        assert orders.status(name)["phase"] == "Failed" and failures[name]["message"] and failures[name]["task"], name
        assert "holderIdentity" not in orders.lease(name), name
    for name in IN_THE_RUN:
        assert run.recap[f"{orders.namespace}/{name}"]["failed"] > 0, name
        assert failures[name]["retryable"] and failures[name]["attempts"] == 1 and failures[name]["nextAttempt"], name
        assert orders.condition("TemplateApplied", name)["status"] == "False", name
    assert "Timed out after 20 second(s)" in failures["hanging"]["message"]
    assert failures["failing"]["task"] == "Ask the inventory of the site"
    assert failures["failing"]["message"].endswith("The inventory has no rack 7.") and "The inventory has no rack 7." in run.output

    for name in ("several", "good"):
        assert run.recap[f"{orders.namespace}/{name}"]["failed"] == 0
        orders.until_phase("Ready", name)
    assert run.output.count('"msg": "more was done"') == 2

    for name in NO_LOG:
        assert failures[name]["task"] in ("Log in", "Ask") and "no_log" in failures[name]["message"]
        assert failures[name]["message"] in run.output
        assert PASSWORD not in json.dumps(orders.get(name))
    # Of a task that fails Ansible itself shows the message, whatever its no_log is; nothing else does.
    said = [line for line in run.output.splitlines() if PASSWORD in line]
    assert not [line for line in said if not line.startswith("[ERROR]: Task failed: Action failed: ")]
    artifacts = [path.read_text(errors="replace") for path in set(orders.folder.rglob("*")) - before if path.is_file()]
    assert not [text for text in artifacts if PASSWORD in text]


FAULTY = """
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider


class ClusterProvider(Provider):
    TYPE = "acme.site.NAME"
    create = update = delete = lambda self, *given: None

    FAULT
"""
FAULTS = {"in_a_call": "def status(self, spec):\n        return int('hunter2')", "in_its_file": "oops oops"}


def test_a_provider_with_a_fault_fails_its_own_orders_only(orders: Orders) -> None:
    folder = orders.folder / "collections/ansible_collections/acme/site/plugins/module_utils/providers"
    folder.mkdir(parents=True)
    options = "argument_specs: {install: {options: {}}, delete: {options: {}}}\n"
    for name, fault in FAULTS.items():
        (folder / f"{name}.py").write_text(FAULTY.replace("NAME", name).replace("FAULT", fault), encoding="utf-8")
        meta = f"title: Faulty\ndescription: Has a fault.\nprovider: acme.site.{name}\nallowed_resource_classes: [fc430]\n"
        tasks = {f"tasks/{entry}.yml": "[]\n" for entry in ("install", "delete")}
        template = orders.role(name, {"meta/template.yml": meta, "meta/argument_specs.yml": options, **tasks})
        orders.apply(name.replace("_", "-"), template=template, raw_parameters="{}")
    orders.apply("good", nodes={"fc430": 1})
    bad = [name.replace("_", "-") for name in FAULTS]
    chosen = [f"{orders.namespace}/{name}" for name in (*bad, "good")]
    run = orders.play("create_cluster", None, cluster_orders=chosen)
    orders.until_phase("Ready", "good")
    orders.play("sync_status", None, cluster_orders=chosen).successful()
    for name in bad:
        shown = str(orders.status(name)) + run.output
        assert f"acme.site.{name.replace('-', '_')} has a bug" in shown and f"{name.replace('-', '_')}.py" in shown
        assert "hunter2" not in shown
        assert "holderIdentity" not in orders.lease(name)


# Secrets


def test_no_secret_is_printed_cached_or_left_behind(orders: Orders) -> None:
    words = ["pullsecret4711word", "idpsecret4711word"]
    pull_secret = json.dumps({"auths": {"registry.example.com": {"auth": words[0]}}})
    orders.put_secret("idp", client=words[1])
    orders.apply(
        template="ocp_4_17_small_idp",
        nodes={"fc430": 1},
        pull_secret=pull_secret,
        idp_issuer="https://login.example.com",
        idp_client_id="me",
        idp_client_secret={"secretRef": {"name": "idp", "key": "client"}},
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
    orders.apply(
        template="ocp_4_17_small_idp", pull_secret=pull_secret, idp_issuer="x", idp_client_id=5, idp_client_secret=[words[1]], nope=1
    )
    outputs.append(orders.play("create_cluster", "demo", "-vvvv", environment=environment).output)
    outputs.append(orders.delete("demo", "-vvvv", environment=environment).output)
    files = [path for path in orders.folder.rglob("*") if path.is_file()]
    texts = outputs + [path.read_text(encoding="utf-8", errors="replace") for path in files]
    for word in [*words, kubeconfig[100:160]]:
        for form in forms(word):
            assert not [text for text in texts if form in text], form


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
    orders.apply(template=orders.template("noted", **tasks), nodes={"fc430": 1})
    orders.create(cluster_hooks=hooks)
    orders.play("delete_cluster", cluster_hooks=hooks).successful()
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
    orders.apply(nodes={"fc430": 1})
    name = orders.role("failing", {"tasks/main.yml": FAILING})
    assert orders.play("create_cluster", cluster_hooks={"pre_install": [name]}).code != 0
    assert orders.status()["failure"]["task"] == "Ask the inventory of the site"
    assert orders.hosted_cluster() is None


def test_a_hook_that_cannot_be_read_is_reported_before_anything_is_created(orders: Orders) -> None:
    orders.role("unreadable_role", {"tasks/main.yml": UNREADABLE})
    orders.apply(nodes={"fc430": 1})
    name = orders.role("unsound", {"tasks/main.yml": INCLUDES["role"]})
    assert orders.play("create_cluster", cluster_hooks={"post_install": [name]}).code != 0
    failure = orders.status()["failure"]
    assert (failure["reason"], failure["retryable"]) == ("BrokenHook", True) and name in failure["message"]
    assert orders.hub.get("namespace", orders.working()) is None
    assert "holderIdentity" not in orders.lease()
    orders.role("unsound", {"tasks/main.yml": "[]\n"})
    orders.create(cluster_hooks={"post_install": name, "pre_delete": ["acme.site.nowhere"]})
