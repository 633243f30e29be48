# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Objects of OpenShift Cluster Manager as changes and diffs show them: without secrets. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.types import Object

HIDDEN = "(hidden)"
SECRET_FIELDS = (
    *("access_key_id", "secret_access_key", "private_key", "private_key_id"),
    *("client_secret", "bind_password", "password", "hashed_password"),
)


def shown(kind: str, name: str, body: Object) -> Object:
    """The object with a kind and a name, and without secrets."""
    if kind == "AddOnInstallation" and "parameters" in body:
        # Any of them may be one.
        body = {**body, "parameters": [{"id": entry.get("id"), "value": HIDDEN} for entry in listed(body["parameters"])]}
    content = {key: value for key, value in without_secrets(body).items() if key not in ("kind", "id", "href", "name")}
    return {"kind": kind, "metadata": {"name": name}, **content}


def without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.get("kind") == "Secret":
            hidden = {field: dict.fromkeys(value[field] or {}, HIDDEN) for field in ("data", "stringData") if field in value}
            return {**value, **hidden}
        return {key: HIDDEN if key in SECRET_FIELDS else without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value


def listed(value: Any) -> list[Object]:
    """Objects inside another: the OpenAPI description has them as a list, and the service also as a page with `items`."""
    return list((value.get("items") if isinstance(value, Mapping) else value) or [])
