"""The module that lists cluster templates, and Ansible's own check of what template roles are given.

Ansible runs where it finds collections, reads documentation or checks roles; otherwise the action is called in process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible_collections.openfleet.clusters.plugins.action import cluster_template_info as action
from ansible_collections.openfleet.clusters.plugins.module_utils.templates import metadata as templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.node_requests import node_requests_as_data
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter, SiteValues
from ansible_collections.openfleet.clusters.plugins.modules import cluster_template_info

COLLECTIONS = Path(templates.__file__).parents[6]
MODULE = "openfleet.clusters.cluster_template_info"
SMALL, IDP, OSD = (f"openfleet.clusters.{name}" for name in ("ocp_4_17_small", "ocp_4_17_small_idp", "osd_small"))
SHIPPED = [f"openfleet.clusters.{role.parents[1].name}" for role in sorted(Path(__file__).parents[3].glob("roles/*/meta/template.yml"))]
SECRET = "hunter2-do-not-show"  # noqa: S105 made up
GIVEN = {"pull_secret": SECRET, "idp_issuer": "https://login.example", "idp_client_id": "id", "idp_client_secret": SECRET}


class Site:
    """A folder with a collection of a site's own, and Ansible as that site runs it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.collections = root / "collections"

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def role(self, name: str, **files: str) -> None:
        """A role of the collection `acme.templates`; `meta__template` is the file meta/template.yml."""
        for file, text in files.items():
            self.write(f"collections/ansible_collections/acme/templates/roles/{name}/{file.replace('__', '/')}.yml", text)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "ANSIBLE_COLLECTIONS_PATH": f"{self.collections}:{COLLECTIONS}",
            "ANSIBLE_HOME": str(self.root / "home"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_NOCOLOR": "true",
        }
        return subprocess.run(
            [sys.executable, "-m", f"ansible.cli.{command[0]}", *command[1:]],
            cwd=self.root,
            env=os.environ | settings | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def ask(self, *, check: bool = False, **arguments: str) -> tuple[bool, dict[str, Any]]:
        """Whether the action said yes, and what else it said."""
        task = SimpleNamespace(args=arguments, check_mode=check, diff=False, async_val=0, action=MODULE)
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=""))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(action, "AnsibleCollectionConfig", SimpleNamespace(collection_paths=[str(self.collections), str(COLLECTIONS)]))
            try:
                result = action.ActionModule(task, connection, None, DataLoader(), None).run()
            except AnsibleError as error:
                result = {"failed": True, "msg": str(error)}
        return not result.get("failed"), result

    def play(self, tasks: Any, *options: str) -> subprocess.CompletedProcess[str]:
        book = self.write("play.yml", yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        return self.run("playbook", str(book), *options)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_all_templates_are_listed_in_order_and_nothing_is_changed(site: Site) -> None:
    fine, result = site.ask()
    assert fine
    assert result["changed"] is False
    assert [template["id"] for template in result["templates"]] == [*SHIPPED]


def test_template_is_returned_with_all_that_the_documentation_promises(site: Site) -> None:
    fine, result = site.ask(template="ocp_4_17_small_idp", check=True)
    assert fine
    (returned,) = result["templates"]
    promised = yaml.safe_load(cluster_template_info.RETURN)["templates"]["contains"]
    assert returned.keys() == promised.keys()
    assert returned["extends"] == SMALL
    assert returned["provider"] == "hypershift"
    assert returned["default_node_requests"] == [{"resourceClass": "fc430", "numberOfNodes": 2}]
    for parameter in returned["parameters"]:
        assert parameter.keys() == promised["parameters"]["contains"].keys()
    wanted = [name for name in GIVEN if name not in returned["site_defaults"]]
    assert [parameter["name"] for parameter in returned["parameters"] if parameter["required"]] == wanted
    assert returned["schema"]["required"] == wanted


def test_template_of_another_collection_is_found(site: Site) -> None:
    site.role("mine", meta__template=f"extends: {SMALL}\ntitle: Mine\n")
    done = site.run("adhoc", "localhost", "-m", MODULE, "-a", "template=acme.templates.mine")
    head, _sign, result = done.stdout.partition("=> ")
    assert "SUCCESS" in head, done.stdout + done.stderr
    assert [template["title"] for template in json.loads(result)["templates"]] == ["Mine"]


def test_template_of_a_collection_beside_the_playbook_is_found(site: Site) -> None:
    site.role("mine", meta__template=f"extends: {SMALL}\ntitle: Mine\n")
    book = site.write(
        "play.yml",
        yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": [{MODULE: {"template": "acme.templates.mine"}}]}]),
    )
    assert site.run("playbook", str(book), ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS)).returncode == 0


def test_broken_template_is_listed_with_its_problem(site: Site) -> None:
    site.role("broken", meta__template="title: [")
    fine, result = site.ask()
    assert fine
    assert {template["id"]: bool(template["problem"]) for template in result["templates"]} == {
        "acme.templates.broken": True,
        **dict.fromkeys(SHIPPED, False),
    }


def test_no_host_is_asked(site: Site) -> None:
    done = site.run("adhoc", "all", "-i", "nowhere.invalid,", "-m", MODULE)
    assert "nowhere.invalid | SUCCESS" in done.stdout


def test_unknown_template_fails_with_the_nearest_name(site: Site) -> None:
    fine, result = site.ask(template="ocp_4_17_smal")
    assert not fine
    assert f"did you mean {SMALL}" in result["msg"]


def test_unknown_argument_fails(site: Site) -> None:
    fine, result = site.ask(name="x")
    assert not fine
    assert "Supported parameters include: template" in result["msg"]


def test_examples_run(site: Site) -> None:
    done = site.play(yaml.safe_load(cluster_template_info.EXAMPLES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OpenShift 4.17, small" in done.stdout
    assert "failed=0" in done.stdout


def test_last_example_stops_at_a_broken_template(site: Site) -> None:
    site.role("broken", meta__template="title: [")
    done = site.play(yaml.safe_load(cluster_template_info.EXAMPLES))
    assert done.returncode != 0
    assert "meta/template.yml is not YAML" in done.stdout + done.stderr


def test_documentation_renders(site: Site) -> None:
    done = site.run("doc", "--type", "module", "--json", MODULE)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[MODULE]["doc"]["options"].keys() == {"template"}
    assert "openfleet.clusters.cluster_template_info" in site.run("doc", "--type", "module", MODULE).stdout


def test_module_run_as_such_says_where_it_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", cluster_template_info.__name__],
        env=os.environ | {"PYTHONPATH": str(COLLECTIONS)},
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {}}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "on the controller" in json.loads(done.stdout)["msg"]


# Ansible's own check of roles


def include(name: str, entry: str, parameters: Any, **instead: Any) -> list[dict[str, Any]]:
    """A task as the playbooks have it."""
    given = {
        "cluster_order": {"metadata": {"name": "demo"}},
        "cluster_working_namespace": "orders-demo",
        "cluster_provider": "hypershift",
        "cluster_lock": {"token": 1},
        "node_requests": [{"resourceClass": "fc430", "numberOfNodes": 2}],
        "template_parameters": parameters,
    }
    return [{"ansible.builtin.include_role": {"name": name, "tasks_from": entry}, "vars": given | instead}]


WRAPPER = f"""
- name: Make the cluster as the base does
  ansible.builtin.include_role:
    name: {SMALL}
    tasks_from: install
    rolespec_validate: false
- name: Use a parameter of one's own
  ansible.builtin.debug:
    msg: "for {{{{ template_parameters.cost_center }}}} on {{{{ template_parameters.release_image }}}}"
"""


@pytest.fixture
def with_tasks(site: Site) -> Site:
    """The roles of this collection with tasks that do nothing, in a collection that hides the real one: only their meta is tried here."""
    ours = COLLECTIONS / "ansible_collections" / "openfleet" / "clusters"
    copy = site.collections / "ansible_collections" / "openfleet" / "clusters"
    copy.mkdir(parents=True)
    for name in ("plugins", "meta"):
        (copy / name).symlink_to(ours / name)
    for role in ("ocp_4_17_small", "ocp_4_17_small_idp", "osd_small"):
        (copy / "roles" / role / "tasks").mkdir(parents=True)
        (copy / "roles" / role / "meta").symlink_to(ours / "roles" / role / "meta")
        for entry in templates.ENTRY_POINTS:
            task = {"ansible.builtin.debug": {"msg": f"{role} {entry} reached"}}
            (copy / "roles" / role / "tasks" / f"{entry}.yml").write_text(yaml.safe_dump([task]))
    return site


@pytest.mark.parametrize("name", [SMALL, IDP, OSD])
def test_ansible_accepts_what_a_checked_order_gives_the_role(name: str, with_tasks: Site) -> None:
    template = resolve(name, find_templates([with_tasks.collections]))
    given = {SMALL: {"pull_secret": SECRET}, IDP: GIVEN, OSD: {"token": SECRET}}[name]
    checked = check(template, json.dumps(given), site=SiteValues({"idp_issuer": SiteParameter(GIVEN["idp_issuer"])}))
    assert checked.role
    nodes = node_requests_as_data(checked.node_requests)
    done = with_tasks.play(include(checked.role, "install", checked.parameters, node_requests=nodes), "-vvv")
    assert done.returncode == 0, done.stdout
    assert "Validating arguments against arg spec install" in done.stdout.replace("'", "")
    assert f"{checked.role.rpartition('.')[2]} install reached" in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("instead", "complaint"),
    [
        ({"node_requests": [{"resourceClass": "a", "numberOfNodes": "many"}]}, "numberOfNodes"),
        ({"template_parameters": {}}, "pull_secret"),
        ({"template_parameters": {"pull_secret": "x", "pul": 1}}, "pul"),
    ],
    ids=["nodes", "missing", "unknown"],
)
def test_ansible_refuses_what_the_role_does_not_declare(instead: dict[str, Any], complaint: str, with_tasks: Site) -> None:
    done = with_tasks.play(include(SMALL, "install", {"pull_secret": "x"}, **instead))
    assert done.returncode != 0
    assert complaint in done.stdout + done.stderr
    assert "reached" not in done.stdout


@pytest.mark.parametrize(("tasks", "role"), [({}, SMALL), ({"tasks__install": WRAPPER}, "acme.templates.mine")], ids=["no tasks", "tasks"])
def test_template_of_a_site_runs_with_and_without_tasks_of_its_own(tasks: dict[str, str], role: str, with_tasks: Site) -> None:
    metadata = {
        "extends": SMALL,
        "title": "Mine",
        "parameters": {"cost_center": {"required": True}, "release_image": {"default": "mine:1"}},
    }
    with_tasks.role("mine", meta__template=yaml.safe_dump(metadata), **tasks)
    template = resolve("acme.templates.mine", find_templates([with_tasks.collections]))
    checked = check(template, json.dumps({"pull_secret": SECRET, "cost_center": "R+D"}))
    assert checked.role == role
    done = with_tasks.play(include(role, "install", checked.parameters))
    assert done.returncode == 0, done.stdout
    assert "ocp_4_17_small install reached" in done.stdout
    assert ("for R+D on mine:1" in done.stdout) == bool(tasks)
