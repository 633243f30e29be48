"""The templates that a tenant can order: what the hubs that accept the tenant offer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.model import Hub
from ....plugins.module_utils.kube.label_selector import matches

SHOWN = ("title", "description", "parameters", "nodes", "classes")


def offered(hubs: Iterable[Object], tenants: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """The templates by name, each with the tenants that can order it. Of equal names the first hub's description counts."""
    found: dict[str, dict[str, Any]] = {}
    for item in sorted(hubs, key=lambda each: str(each["metadata"]["name"])):
        hub = Hub.from_object(item)
        accepted = [tenant for tenant, labels in tenants.items() if matches(labels, hub.tenant_selector)]
        if not accepted or not hub.schedulable or hub.is_deleting:
            continue
        for template in (item.get("status") or {}).get("templates") or ():
            described = {name: template[name] for name in SHOWN if template.get(name)}
            entry = found.setdefault(template["name"], {"id": template["name"], "name": template["name"], "tenants": [], **described})
            entry["tenants"] = sorted({*entry["tenants"], *accepted})
    return [found[name] for name in sorted(found)]
