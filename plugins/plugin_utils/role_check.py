# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Loads the tasks of a role before a run. A play that includes a role with a parse error ends for all hosts."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from ansible.errors import AnsibleError, AnsibleParserError, AnsibleTemplateError
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.block import Block
from ansible.playbook.play import Play
from ansible.playbook.role_include import IncludeRole
from ansible.playbook.task import Task
from ansible.playbook.task_include import TaskInclude
from ansible.vars.manager import VariableManager

# An entry point of a role; or a task file and an empty string.
TaskSource = tuple[str, str]


class RoleCheck:
    """Loads each role once, as a play does. Threads can share it, and use Ansible's loader one at a time."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = _without_copies(loader)
        self._variables = VariableManager(loader=loader)
        self._loading = threading.Lock()
        self._errors: dict[TaskSource, AnsibleError | None] = {}

    def problem(self, role: str, entry: str) -> str | None:
        """The parse error in the tasks of that entry point and their includes, or None. Skips names that are variables."""
        with self._loading:
            error = self._error((role, entry))
        return " ".join(str(error).split()).rstrip(".") if error else None

    def _error(self, source: TaskSource) -> AnsibleError | None:
        if source not in self._errors:
            self._errors[source] = None  # while it is loaded: ends the recursion of a file that includes itself
            self._errors[source] = self._read(source)
        return self._errors[source]

    def _read(self, source: TaskSource) -> AnsibleError | None:
        name, entry = source
        # An import loads the file at once, an include does not.
        task = {"ansible.builtin.import_role": {"name": name, "tasks_from": entry, "rolespec_validate": False}}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [task if entry else {"ansible.builtin.import_tasks": name}]}
        try:
            blocks = Play.load(play, variable_manager=self._variables, loader=self._loader).tasks
        except AnsibleTemplateError:
            # The name of an import is a variable, which only the run has.
            return None
        except AnsibleError as error:
            return error
        errors = (self._error(source) for task in _tasks(blocks) for source in self._included(task))
        # A missing file may never be included, and fails only its own task.
        return next((error for error in errors if isinstance(error, AnsibleParserError)), None)

    def _included(self, task: Task) -> Iterator[TaskSource]:
        if isinstance(task, IncludeRole):
            yield str(task.args.get("name") or task.args.get("role")), str(task.args.get("tasks_from") or "main")
        elif isinstance(task, TaskInclude):
            name = str(task.args.get("file") or task.args.get("_raw_params"))
            # Ansible searches this list from its end, where the folder of the including file is.
            folders = [folder for path in reversed(task.get_search_path()) for folder in (Path(path), Path(path) / "tasks")]
            found = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if found:
                yield str(found), ""


def _without_copies(loader: DataLoader) -> DataLoader:
    """A loader that stores no file, and returns what it read instead of a copy: here each file is read once."""
    own = copy.copy(loader)
    own.load_from_file = functools.partial(loader.load_from_file, cache="none", unsafe=True)
    return own


def _tasks(blocks: Iterable[Block | Task]) -> Iterator[Task]:
    for item in blocks:
        if isinstance(item, Block):
            yield from _tasks([*item.block, *item.rescue, *item.always])
        else:
            yield item
