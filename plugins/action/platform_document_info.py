# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Generate the document of Automation Platform's objects. Documented in the module of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.document import generate
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.facts import read_facts
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.secrets import Secrets
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.site import InvalidSiteFile, parse, read
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import platform_document_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction

ROOT = Path(__file__).resolve().parents[2]  # of the collection
SECRETS = ("token", "engine_token", "engine_kubeconfig", "webhook_token")


class ActionModule(BaseAction):
    SPEC: ClassVar[Spec] = platform_document_info.SPEC
    RULES: ClassVar[dict[str, Any]] = platform_document_info.RULES
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (InvalidSiteFile,)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        offered = find_templates(AnsibleCollectionConfig.collection_paths).values()
        facts = read_facts(ROOT, [template.id for template in offered if not template.problem])
        given = parameters["site"] if parameters["site"] is not None else read(Path(parameters["site_file"]))
        site = parse(given, {name for playbook in facts.playbooks.values() for name in playbook.variables})
        secrets = Secrets(**{name: parameters[name] or "" for name in SECRETS})
        returned = ("address", "validate_certs", "organization", "prefix", "site_namespace")
        document = generate(facts, site, secrets) if parameters["state"] == "present" else {}
        return {"changed": False, "document": document, "site": {name: getattr(site, name) for name in returned}}
