# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether Ansible can read a role's tasks. A play that meets one it cannot read ends at once, for all hosts and without any rescue."""

from __future__ import annotations

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

# An entry point of a role, or a file of tasks, whose second part is empty.
Place = tuple[str, str]


class RoleCheck:
    """Reads roles as a play would, each once. Several threads may ask; Ansible's reader is used by one at a time."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._turn = threading.Lock()
        self._known: dict[Place, AnsibleError | None] = {}

    def problem(self, role: str, entry: str) -> str | None:
        """What is wrong with the tasks of that entry point and with what they include, or None. What a variable names is not read."""
        with self._turn:
            error = self._error((role, entry))
        return " ".join(str(error).split()).rstrip(".") if error else None

    def _error(self, place: Place) -> AnsibleError | None:
        if place not in self._known:
            self._known[place] = None  # while it is read: what includes itself is not read for ever
            self._known[place] = self._read(place)
        return self._known[place]

    def _read(self, place: Place) -> AnsibleError | None:
        what, entry = place
        # Imported, and not included: that is read at once.
        task = {"ansible.builtin.import_role": {"name": what, "tasks_from": entry, "rolespec_validate": False}}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [task if entry else {"ansible.builtin.import_tasks": what}]}
        try:
            blocks = Play.load(play, variable_manager=VariableManager(loader=self._loader), loader=self._loader).tasks
        except AnsibleTemplateError:
            # It imports what a variable names, which only the run can know.
            return None
        except AnsibleError as error:
            return error
        errors = (self._error(place) for task in _tasks(blocks) for place in self._included(task))
        # What is not there may never be asked for, and fails as a task does if it is.
        return next((error for error in errors if isinstance(error, AnsibleParserError)), None)

    def _included(self, task: Task) -> Iterator[Place]:
        if isinstance(task, IncludeRole):
            yield str(task.args.get("name") or task.args.get("role")), str(task.args.get("tasks_from") or "main")
        elif isinstance(task, TaskInclude):
            name = str(task.args.get("file") or task.args.get("_raw_params"))
            # The folder of the file that includes it is the last in this list, and the first that Ansible looks in.
            folders = [folder for path in reversed(task.get_search_path()) for folder in (Path(path), Path(path) / "tasks")]
            found = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if found:
                yield str(found), ""


def _tasks(blocks: Iterable[Block | Task]) -> Iterator[Task]:
    for item in blocks:
        if isinstance(item, Block):
            yield from _tasks([*item.block, *item.rescue, *item.always])
        else:
            yield item
