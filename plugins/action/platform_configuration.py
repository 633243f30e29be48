# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Configure Automation Platform from a document. Documented in the module of the same name."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, PLATFORM, Spec, connection
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.configuration import configure, remove
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.ledger import LedgerStore
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.report import as_diff, as_objects, as_table, counts
from ansible_collections.openfleet.clusters.plugins.modules import platform_configuration
from ansible_collections.openfleet.clusters.plugins.plugin_utils.platform_action import PlatformAction


class ActionModule(PlatformAction):
    SHARED: ClassVar[Spec] = KUBERNETES | PLATFORM
    SPEC: ClassVar[Spec] = platform_configuration.SPEC
    RULES: ClassVar[dict[str, Any]] = platform_configuration.RULES

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        api = self.api(parameters)
        store = LedgerStore(Kube.connect(connection(parameters)), parameters["site_namespace"], parameters["ledger"])
        if parameters["state"] == "absent":
            plan = remove(api, store, check_mode=self.check_mode)
        else:
            # As plain values: Ansible's own types of text are no others to JSON, but to YAML.
            document = json.loads(json.dumps(parameters["document"], default=str))
            plan = configure(api, store, document, check_mode=self.check_mode)
        objects = as_objects(plan)
        return {
            "changed": bool(objects),
            "plan": objects,
            "table": as_table(objects),
            "summary": counts(objects, plan.unchanged),
            "requests": api.requests,
        } | ({"diff": as_diff(objects)} if objects else {})
