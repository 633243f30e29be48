"""What of a role Ansible cannot read, found before a play meets it: in its entry point and in whatever that includes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

UNREADABLE = "- name: Not even YAML: [\n"
INCLUDES = "- name: Deep inside\n  block:\n    - name: Include\n      ansible.builtin.{}\n"
SECOND = "- name: Further\n  ansible.builtin.include_tasks:\n    file: second.yml\n"
# By the name of the role: its files, and whether it can be read as far as that can be known before the run.
ROLES: dict[str, tuple[dict[str, str], bool]] = {
    "sound": ({"main": "[]\n"}, True),
    "unreadable": ({"main": UNREADABLE}, False),
    "missing": ({}, False),
    "within": ({"main": INCLUDES.format("include_role:\n        name: acme.site.unreadable")}, False),
    "entry": ({"main": INCLUDES.format("include_role:\n        name: acme.site.other\n        tasks_from: worse")}, False),
    "other": ({"main": "[]\n", "worse": UNREADABLE}, True),
    # Beside the file that includes it, and not where the first file is.
    "file": ({"main": INCLUDES.format("include_tasks: more/first.yml"), "more/first": SECOND, "more/second": UNREADABLE}, False),
    # What does not exist may never be included, and fails as a task does if it is.
    "nowhere": ({"main": INCLUDES.format("include_role:\n        name: acme.site.missing")}, True),
    "nothing": ({"main": INCLUDES.format("include_tasks: nothing.yml")}, True),
    "itself": ({"main": INCLUDES.format("include_role:\n        name: acme.site.itself")}, True),
    "variable": ({"main": INCLUDES.format('include_tasks: "{{ chosen }}.yml"')}, True),
}
# Ansible's loader of collections belongs to a process as a whole, so this one is only for it.
PROGRAM = """
import json, sys
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader(sys.argv[1:])
from ansible_collections.openfleet.clusters.plugins.plugin_utils.role_check import RoleCheck
check = RoleCheck(DataLoader())
print(json.dumps({role: check.problem(f"acme.site.{role}", "main") for role in json.load(sys.stdin)}))
"""


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    root = tmp_path_factory.mktemp("roles")
    for role, (files, _sound) in ROLES.items():
        folder = root / "ansible_collections/acme/site/roles" / role
        for name, text in files.items():
            file = folder / f"tasks/{name}.yml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(root), str(Path(sys.prefix) / "collections")]
    done = subprocess.run(command, input=json.dumps(list(ROLES)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_cannot_be_read_is_known_before_the_run(problems: dict[str, str | None], role: str) -> None:
    problem = problems[role]
    assert (problem is None) == ROLES[role][1], problem
    assert problem is None or "\n" not in problem
