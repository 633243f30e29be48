# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prove that a bucket honours the conditions that agreements rely on. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import NoConditions
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import prove, table
from ansible_collections.openfleet.clusters.plugins.modules import s3_coordination_check
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action


class ActionModule(S3Action):
    SPEC: ClassVar[Spec] = s3_coordination_check.SPEC

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        if self.check_mode:
            return {"changed": False, "skipped": True, "msg": "The proof has to write, so it is not made in check mode."}
        findings = prove(store)
        told = [vars(finding) | {"passed": finding.passed} for finding in findings]
        answer: dict[str, Any] = {"changed": False, "findings": told, "table": table(findings)}
        try:
            self.require(findings, parameters)
        except NoConditions as error:
            return answer | self.failure(error)
        return answer
