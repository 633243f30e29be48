# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""List cluster templates. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.description import summary
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import TemplateError
from ansible_collections.openfleet.clusters.plugins.modules import cluster_template_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction


class ActionModule(BaseAction):
    SPEC: ClassVar[Spec] = cluster_template_info.SPEC
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (TemplateError,)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        # The folders in which Ansible itself finds roles: beside the playbook, the configured paths, those of Python.
        templates = find_templates(AnsibleCollectionConfig.collection_paths)
        wanted = [resolve(parameters["template"], templates)] if parameters["template"] else templates.values()
        return {"changed": False, "templates": sorted(map(summary, wanted), key=lambda template: str(template["id"]))}
