# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the account of a hub's agent on the home cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_access import ensure_access, issue_kubeconfig
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import hub_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.modules import hub_access
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = hub_access.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        name, issue = parameters["name"], parameters["issue"]
        created = ensure_access(kube, name, check_mode=self.check_mode)
        result: dict[str, Any] = {
            "changed": bool(created) or issue,
            "namespace": hub_namespace(name),
            "created": [f"{each.kind} {each.name}" for each in created],
        }
        if issue and not self.check_mode:
            config, expires = issue_kubeconfig(kube, name, parameters["expiration_seconds"], parameters["server"] or "")
            result |= {"kubeconfig": config, "expires": expires}
        return result
