# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of all our actions: they run in the controller's process, where a task costs a tenth of what a module's own process does.

An action validates its arguments, makes one call into the library, and turns every error of the library into a failed task with one
sentence. What it returns is printed, so it never holds a secret.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec


class BaseAction(ActionBase):
    """A base on this gives its actions a connection; an action has arguments (`SPEC`), rules between them (`RULES`), and `work`."""

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
        """Connect, and call `work` of the action."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        self.variables = task_vars or {}  # as they were given: none of them is rendered
        _result, parameters = self.validate_argument_spec(argument_spec=self.SHARED | self.SPEC, **self.RULES)
        try:
            return self.run_action(parameters)
        except self.ERRORS as error:
            return self.failure(error)

    def failure(self, error: Exception) -> dict[str, Any]:
        """A failed task that says what went wrong, and whether the same may work later."""
        return {
            "failed": True,
            "msg": str(error),
            "reason": type(error).__name__,
            "retryable": bool(getattr(error, "retryable", False)),
        }

    @property
    def check_mode(self) -> bool:
        return bool(self._task.check_mode)
