# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read or write what was decided about a placement. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import verify
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import (
    Decision,
    StateStore,
    behind,
    differences,
    predicted,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import prove_way
from ansible_collections.openfleet.clusters.plugins.modules import s3_decision
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action


class ActionModule(S3Action):
    SPEC: ClassVar[Spec] = s3_decision.SPEC
    RULES: ClassVar[dict[str, Any]] = s3_decision.RULES

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        place, documents = self.place(store, parameters)
        states, mirror = StateStore(documents, place, self.identity(), parameters["keep_history"]), Decision(documents, place)
        before = after = states.read()
        changed = False
        if parameters["decision"] is not None:
            changes = {name: parameters[name] for name in ("decision", "step") if parameters[name] is not None}
            verify(documents, place, parameters["epoch"])
            before = states.plan(parameters["epoch"], changes, parameters["expected_revision"])
            if self.check_mode:
                after = predicted(before, changes)
                changed = after.revision != before.revision or behind(mirror.read(), before)
            else:
                self.require(prove_way(store), parameters)
                after = states.write(parameters["epoch"], changes, before.revision)
                changed = mirror.publish(after) or after.revision != before.revision
        return {
            "changed": changed,
            "decision": after.decision,
            "epoch": after.epoch,
            "revision": after.revision,
            "mirrored": mirror.read().decision == after.decision,
            "diff": differences(before, after),
        }
