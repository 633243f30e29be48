# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prepare a cluster as a hub of a fleet. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_checks import checks_of, observe_hub
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_preparation import needs_credential, prepare, store_credential
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import server_time
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import hub_preparation
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = hub_preparation.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names, site = Names.of(parameters), parameters["site_namespace"]
        applied = prepare(kube, site, check_mode=self.check_mode)
        credential = parameters["home_kubeconfig"]
        stored = credential is not None and store_credential(kube, site, credential, check_mode=self.check_mode)
        checks = checks_of(observe_hub(kube, names, find_templates(AnsibleCollectionConfig.collection_paths)))
        return {
            "changed": bool(applied) or stored,
            "applied": [f"{each.kind} {each.name}" for each in applied],
            "needs_credential": not stored and needs_credential(kube, site, server_time(kube)),
            "checks": [{"name": each.name, "passed": each.passed, "message": each.message} for each in checks],
            "missing": [f"{each.name}: {each.message}" for each in checks if not each.passed],
        }
