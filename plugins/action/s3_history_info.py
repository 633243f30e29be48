# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read the history of the state of a workload. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import History
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.modules import s3_history_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action

INTERNAL_FIELDS = ("identity", "nonce")


class ActionModule(S3Action):
    SPEC: ClassVar[Spec] = s3_history_info.SPEC

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        workload, documents = self.workload(store, parameters)
        history = History(documents, workload)
        entries = history.entries(max(0, parameters["newest"]))
        revisions = [{name: value for name, value in entry.items() if name not in INTERNAL_FIELDS} for entry in entries]
        return {"changed": False, "history": revisions, "kept": len(history.keys())}
