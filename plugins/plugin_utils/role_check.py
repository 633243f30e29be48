# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether Ansible can read a role's tasks. A play that meets one it cannot read ends at once, for all hosts and without any rescue."""

from __future__ import annotations

import threading

from ansible.errors import AnsibleError, AnsibleTemplateError
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play import Play
from ansible.vars.manager import VariableManager


class RoleCheck:
    """Reads roles as a play would, each once. Several threads may ask; Ansible's reader is used by one at a time."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._turn = threading.Lock()
        self._known: dict[tuple[str, str], str | None] = {}

    def problem(self, role: str, entry: str) -> str | None:
        """What is wrong with the tasks of that entry point, or None. Further roles that these include by themselves are not read."""
        with self._turn:
            if (role, entry) not in self._known:
                self._known[role, entry] = self._read(role, entry)
            return self._known[role, entry]

    def _read(self, role: str, entry: str) -> str | None:
        # Imported, and not included: that is read at once.
        task = {"ansible.builtin.import_role": {"name": role, "tasks_from": entry, "rolespec_validate": False}}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
        try:
            Play.load(play, variable_manager=VariableManager(loader=self._loader), loader=self._loader)
        except AnsibleTemplateError:
            # It imports what a variable names, which only the run can know.
            return None
        except AnsibleError as error:
            return " ".join(str(error).split()).rstrip(".")
        return None
