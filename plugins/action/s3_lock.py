# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Acquire, release or read the lease of a workload. Documented in the module of the same name."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.task_lease import LeaseResult, TaskLease
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import full_check, quick_check
from ansible_collections.openfleet.clusters.plugins.modules import s3_lock
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action


class ActionModule(S3Action):
    SPEC: ClassVar[Spec] = s3_lock.SPEC

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        workload, _documents = self.workload(store, parameters)
        lease = TaskLease(
            store,
            workload,
            parameters["holder"] or self.identity(),
            parameters["ttl"],
            full_check=partial(self.require_conditional_writes, full_check, store, parameters),
            quick_check=partial(self.require_conditional_writes, quick_check, store, parameters),
        )
        if parameters["state"] == "observed":
            return _answer(LeaseResult(False, lease.read()))
        if parameters["state"] == "released":
            return _answer(lease.release(self.check_mode))
        acquire = lease.preview_acquire if self.check_mode else lease.acquire
        result = acquire(parameters["wait_timeout"])
        return _answer(result) | {"acting_seconds": round(result.acting_seconds, 3)}


def _answer(result: LeaseResult) -> dict[str, Any]:
    return {"changed": result.changed, "lock": result.lock.content(), "epoch": result.lock.epoch}
