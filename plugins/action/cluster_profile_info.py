# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""List the profiles that a site offers. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.charts import Charts
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.listing import list_profiles
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import read_site_settings
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.modules import cluster_profile_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_profile_info.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        name = parameters["template"]
        template = resolve(name, find_templates(AnsibleCollectionConfig.collection_paths)) if name else None
        offer = read_site_settings(kube, parameters["site_namespace"], secrets=False).offer
        return {"changed": False, "profiles": list_profiles(offer, template, Charts(offer))}
