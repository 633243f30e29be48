# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check that a bucket honours conditional writes. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import ConditionalWritesUnsupported
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import format_table, full_check, require_passed
from ansible_collections.openfleet.clusters.plugins.modules import s3_coordination_check
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action, store_name


class ActionModule(S3Action):
    SPEC: ClassVar[Spec] = s3_coordination_check.SPEC

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        if self.check_mode:
            return {"changed": False, "skipped": True, "msg": "The check writes objects, so check mode skips it."}
        results = full_check(store)
        cases = [vars(result) | {"passed": result.passed} for result in results]
        answer: dict[str, Any] = {"changed": False, "cases": cases, "table": format_table(results)}
        try:
            require_passed(results, store_name(parameters))
        except ConditionalWritesUnsupported as error:
            return answer | self.failure(error)
        return answer
