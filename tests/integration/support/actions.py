"""Single tasks in this process, with the same answers as those of a playbook. Ansible's own output and no_log are not here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError

from .in_process import act
from .playbooks import Answer


def answer(module: str, *, check: bool = False, variables: Mapping[str, Any] | None = None, **arguments: Any) -> Answer:
    """The answer to a task with these arguments and variables, also where Ansible itself refuses the arguments."""
    try:
        result = act(module, arguments, check=check, variables=variables)
    except AnsibleError as error:
        result = {"failed": True, "msg": str(error)}
    return Answer(bool(result.get("failed")), result)
