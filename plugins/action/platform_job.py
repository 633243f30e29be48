# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a job of Automation Platform. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.launch import PROMPTS, run_job
from ansible_collections.openfleet.clusters.plugins.modules import platform_job
from ansible_collections.openfleet.clusters.plugins.plugin_utils.platform_action import PlatformAction


class ActionModule(PlatformAction):
    SPEC: ClassVar[Spec] = platform_job.SPEC

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        changed = parameters["job_type"] != "check"
        if self.check_mode:
            return {"changed": changed}
        given = {name: parameters[name] for name in PROMPTS}
        job = run_job(self.api(parameters), parameters["template"], parameters["organization"], given)
        return {"changed": changed, "id": job.id, "url": job.url, "output": job.output.splitlines()}
