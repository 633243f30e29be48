# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read or write the decision for a workload. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore, diff
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.modules import s3_decision
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import StateAction


class ActionModule(StateAction):
    SPEC: ClassVar[Spec] = s3_decision.SPEC
    RULES: ClassVar[dict[str, Any]] = s3_decision.RULES

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        workload, documents = self.workload(store, parameters)
        states = StateStore(documents, workload, self.identity(), parameters["keep_history"])
        decisions = DecisionStore(documents, workload)
        before = after = states.read()
        changed = False
        if parameters["decision"] is not None:
            changes = {name: parameters[name] for name in ("decision", "step") if parameters[name] is not None}
            before, after = self.write_state(store, documents, states, changes, parameters)
            outdated = decisions.read().is_replaced_by(before) if self.check_mode else decisions.publish(after)
            changed = outdated or after.revision != before.revision
        return {
            "changed": changed,
            "decision": after.decision,
            "epoch": after.epoch,
            "revision": after.revision,
            "published": decisions.read().decision == after.decision,
            "diff": diff(before, after),
        }
