# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read Automation Platform as a document. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.common.text import did_you_mean
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.export import EXPORTED, export
from ansible_collections.openfleet.clusters.plugins.modules import platform_configuration_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.platform_action import PlatformAction


class ActionModule(PlatformAction):
    SPEC: ClassVar[Spec] = platform_configuration_info.SPEC
    RULES: ClassVar[dict[str, Any]] = {}

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        for key in parameters["kinds"]:
            if key not in EXPORTED:
                return {"failed": True, "msg": f"{key} cannot be exported{did_you_mean(key, EXPORTED)}: remove it from kinds."}
        api = self.api(parameters)
        document = export(api, parameters["kinds"] or EXPORTED, parameters["organization"] or "")
        return {"changed": False, "document": document, "requests": api.requests}
