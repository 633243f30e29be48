# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of the actions that use an S3 bucket."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import verify_epoch
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import State, StateStore, preview
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunEnded, RunProcess, run_identity
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import S3Error
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import CaseResult, quick_check, require_passed
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction


class S3Action(BaseAction):
    """Passes the store that the shared arguments describe to `work`."""

    SHARED: ClassVar[Spec] = S3
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (S3Error, RunEnded)
    _host = ""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._host = str((task_vars or {}).get("inventory_hostname", ""))
        return super().run(tmp, task_vars)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return self.work(connect(parameters), parameters)

    @abstractmethod
    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        """Do the task and return its result."""

    def identity(self) -> str:
        """The same for all tasks of this run on this host, and unique to them. RunEnded where the run has ended."""
        return run_identity(RunProcess.of_worker().pid, self._host)

    @staticmethod
    def require_conditional_writes(
        check: Callable[[ObjectStore], list[CaseResult]], store: ObjectStore, parameters: dict[str, Any]
    ) -> None:
        """Run a check of the store, and raise ConditionalWritesUnsupported if it fails.

        Each task calls this before it writes.
        """
        require_passed(check(store), store_name(parameters))

    @staticmethod
    def workload(store: ObjectStore, parameters: dict[str, Any]) -> tuple[WorkloadRef, DocumentStore]:
        workload = WorkloadRef(parameters["namespace"], parameters["name"])
        return workload, DocumentStore(store, workload.identity())


class StateAction(S3Action):
    """The base of the actions that write the state of a workload."""

    def write_state(
        self, store: ObjectStore, documents: DocumentStore, states: StateStore, changes: dict[str, Any], parameters: dict[str, Any]
    ) -> tuple[State, State]:
        """The state before and after these changes, under the epoch of the task. In check mode, as it would be."""
        verify_epoch(documents, states.workload, parameters["epoch"])
        before = states.check_write(parameters["epoch"], changes, parameters["expected_revision"])
        if self.check_mode:
            return before, preview(before, changes)
        self.require_conditional_writes(quick_check, store, parameters)
        return before, states.write(parameters["epoch"], changes, before.revision)


def store_name(parameters: dict[str, Any]) -> str:
    return f"Bucket {parameters['bucket']} at {parameters['endpoint_url'] or 'AWS'}"
