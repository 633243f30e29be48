# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values of fields in documents and in the API: converted, compared, and shown without secrets. Pure functions."""

from __future__ import annotations

import json
from typing import Any

from ..common.third_party import yaml
from ..common.types import Object
from .model import Field

ENCRYPTED = "$encrypted$"  # how the API shows a secret; written back it keeps the secret
HIDDEN, OTHER = "(secret)", "(another secret)"
# Secrets of notification templates, of every type that there is. Headers often have a token.
NOTIFICATION_SECRETS = ("password", "token", "grafana_key", "account_token", "headers")


def to_api(field: Field, value: Any) -> Any:
    if field.form == "variables":
        return "" if value in (None, "") else json.dumps(_parsed(value), sort_keys=True)
    if field.form == "yaml" and not isinstance(value, str):
        return "" if value is None else yaml.safe_dump(value, sort_keys=False)
    if field.form == "inverted":
        return not value
    return value


def from_api(field: Field, value: Any) -> Any:
    """The value as a document has it."""
    if field.form in ("variables", "yaml"):
        return _parsed(value)
    if field.form == "inverted":
        return not value
    return value


def same(field: Field, wanted: Any, current: Any) -> bool:
    """Whether the API has the wanted value of a document."""
    if field.form in ("variables", "yaml"):
        return bool((_parsed(wanted) or None) == (_parsed(current) or None))
    return equal(wanted, from_api(field, current))


def equal(wanted: Any, current: Any) -> bool:
    """Equal values, where a variable of Ansible may be text: "5" is 5, and nothing is empty."""
    if isinstance(wanted, dict) and isinstance(current, dict):
        return wanted.keys() == current.keys() and all(equal(value, current[name]) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(current, list):
        return len(wanted) == len(current) and all(map(equal, wanted, current))
    if wanted in (None, "", [], {}) and current in (None, "", [], {}):
        return True
    if isinstance(wanted, str) != isinstance(current, str) and wanted is not None and current is not None:
        return str(wanted).lower() == str(current).lower()
    return bool(wanted == current)


def _parsed(value: Any) -> Any:
    """What a text in YAML or JSON has; a text that is neither stays one."""
    if not isinstance(value, str):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value


def secret_inputs(credential_type: Object | None) -> set[str] | None:
    """The inputs of a credential type that are secret; None where the type is unknown, so that all of them count as such."""
    if credential_type is None:
        return None
    fields = (credential_type.get("inputs") or {}).get("fields") or []
    return {str(each.get("id")) for each in fields if each.get("secret")}


def default_inputs(credential_type: Object | None) -> Object:
    fields = ((credential_type or {}).get("inputs") or {}).get("fields") or []
    return {str(each.get("id")): each["default"] for each in fields if "default" in each}
