# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check a phase of the migration from ACM to direct access. Documented in the module of the same name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.migration import check_phase
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.modules import dr_migration_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = dr_migration_info.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        checks = check_phase(kube, parameters["namespace"], parameters["phase"])
        return {"changed": False, "passed": all(check.passed for check in checks), "checks": [asdict(check) for check in checks]}
