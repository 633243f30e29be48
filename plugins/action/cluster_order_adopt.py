# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Adopt the clusters of restored orders. Documented in the module of the same name."""

from __future__ import annotations

import os
import secrets
from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import Change, diff
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.adopt import adopt
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, named
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_adopt
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_adopt.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            chosen = named(parameters["name"], parameters["namespace"], parameters["orders"], None)
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        if not chosen:
            return {"failed": True, "msg": "Name the orders that adopt their clusters: by name and namespace, or by orders."}
        run = Run(kube, Names.of(parameters), find_templates(AnsibleCollectionConfig.collection_paths), self.check_mode)
        holder = f"adopt-{os.getppid()}-{secrets.token_hex(4)}"
        changes: list[Change] = []
        reports: list[dict[str, Any]] = []
        problems: list[str] = []

        def one(order: OrderName) -> list[Change]:
            return adopt(run, order.namespace, order.name, holder)

        for order, result in zip(chosen, kube.in_parallel(one, chosen), strict=True):
            if isinstance(result, KubeError):
                problems.append(f"{order.namespace}/{order.name}: {result}")
                continue
            changes += result
            changed = any(change.changed for change in result)
            reports.append({"namespace": order.namespace, "name": order.name, "changed": changed})
        answer = {"changed": any(report["changed"] for report in reports), "orders": reports, "diff": diff(changes)}
        return answer | {"failed": True, "msg": " ".join(problems)} if problems else answer
