# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of all actions. They run in Ansible's process, where a task costs a tenth of a module in its own process.

An action validates its arguments, makes one call into the library, and turns an error of the library into a failed task.
Its result is printed, so it contains no secret.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec


class BaseAction(ActionBase):
    """An action has arguments (`SPEC`) and rules between them (`RULES`). A subclass connects it and calls its `work`."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    SHARED: ClassVar[Spec] = {}
    SPEC: ClassVar[Spec] = {}
    RULES: ClassVar[dict[str, Any]] = {}
    ERRORS: ClassVar[tuple[type[Exception], ...]] = ()

    @abstractmethod
    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Do the task and return its result."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        self.variables = task_vars or {}  # not rendered
        _result, parameters = self.validate_argument_spec(argument_spec=self.SHARED | self.SPEC, **self.RULES)
        try:
            return self.run_action(parameters)
        except self.ERRORS as error:
            return self.failure(error)

    def failure(self, error: Exception) -> dict[str, Any]:
        """The result of a failed task, with its reason and whether a retry can succeed."""
        return {
            "failed": True,
            "msg": str(error),
            "reason": type(error).__name__,
            "retryable": bool(getattr(error, "retryable", False)),
        }

    @property
    def check_mode(self) -> bool:
        return bool(self._task.check_mode)
