# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Propose an order, or its change, as a pull request. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import FORGE, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.base import Forge, ForgeError
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.proposal import Proposal, propose
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.order_file import OrderFile, merge, to_text, validate
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import TemplateError
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_proposal
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction
from ansible_collections.openfleet.clusters.plugins.plugin_utils.forge_action import forge_from


class ActionModule(BaseAction):
    SHARED: ClassVar[Spec] = FORGE
    SPEC: ClassVar[Spec] = cluster_order_proposal.SPEC
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (ForgeError, TemplateError, KubeError)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        wanted = OrderFile(
            parameters["namespace"],
            parameters["name"],
            parameters["template_id"],
            parameters["template_parameters"],
            parameters["node_requests"],
            _strings(parameters["labels"]),
            _strings(parameters["annotations"]),
        )
        forge, path, base = forge_from(parameters), wanted.path(parameters["path"]), parameters["base_branch"]
        content = None if parameters["state"] == "absent" else self._content(forge, wanted, path, parameters)
        subject = f"{wanted.namespace}/{wanted.name}"
        title = f"{'Delete' if content is None else 'Order'} the cluster {subject}"
        body = f"{'Deletes' if content is None else 'Creates or changes'} the order in {path}."
        proposed = propose(forge, Proposal(path, content, subject, title, body, base), check_mode=self.check_mode)
        request = proposed.pull_request
        result: dict[str, Any] = {
            "changed": proposed.changed,
            "path": path,
            "branch": proposed.branch,
            "pull_request": {"number": request.number, "url": request.url} if request else None,
        }
        if proposed.changed:
            # A file has no secret, so all of it can be shown.
            result["diff"] = {"before": proposed.before or "", "after": content or "", "before_header": path, "after_header": path}
        return result

    def _content(self, forge: Forge, wanted: OrderFile, path: str, parameters: dict[str, Any]) -> str:
        present = forge.file(path, parameters["base_branch"])
        order = merge(wanted, f"{parameters['api_group']}/v1alpha1", present.content if present else None)
        template = resolve(order["spec"]["templateID"], find_templates(AnsibleCollectionConfig.collection_paths))
        validate(order, template)
        return to_text(order)


def _strings(values: dict[str, Any] | None) -> dict[str, str] | None:
    return None if values is None else {str(key): str(value) for key, value in values.items()}
