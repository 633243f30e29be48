# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""List cluster templates. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import TemplateError, find_templates, resolve, summary


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        _result, arguments = self.validate_argument_spec(argument_spec={"template": {"type": "str"}})
        # Where Ansible looks for roles itself: beside the playbook, the configured paths, those of Python.
        templates = find_templates(AnsibleCollectionConfig.collection_paths)
        try:
            wanted = [resolve(arguments["template"], templates)] if arguments["template"] else templates.values()
        except TemplateError as error:
            return {"failed": True, "msg": str(error)}
        return {"changed": False, "templates": sorted(map(summary, wanted), key=lambda template: str(template["id"]))}
