# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read or write the state of a workload. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore, diff
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.modules import s3_state
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import StateAction


class ActionModule(StateAction):
    SPEC: ClassVar[Spec] = s3_state.SPEC
    RULES: ClassVar[dict[str, Any]] = s3_state.RULES

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        workload, documents = self.workload(store, parameters)
        states = StateStore(documents, workload, self.identity(), parameters["keep_history"])
        changes = {name: parameters[name] for name in ("intent", "step") if parameters[name] is not None}
        before = after = states.read()
        if changes:
            before, after = self.write_state(store, documents, states, changes, parameters)
        return {
            "changed": after.revision != before.revision,
            "state": after.content(),
            "revision": after.revision,
            "diff": diff(before, after),
        }
