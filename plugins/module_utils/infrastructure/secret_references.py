# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values that tasks take from Secrets on the hub instead of from variables. The namespace is the caller's, never part of a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kube.client import Kube
from ..kube.errors import Invalid, KubeError
from ..kube.secret_data import NotText, decode


class SecretMissing(KubeError):
    """The Secret, or its key, does not exist. Its owner may create it any time."""

    retryable = True


def referenced(kube: Kube, namespace: str, references: Mapping[str, Any]) -> dict[str, str]:
    """The values by the names of the references, each a mapping with `name` and `key`. No message has a value."""
    return {str(option): _value(kube, namespace, str(option), reference) for option, reference in references.items()}


def _value(kube: Kube, namespace: str, option: str, reference: Any) -> str:
    parts = [reference.get(part) for part in ("name", "key")] if isinstance(reference, Mapping) else []
    if not parts or set(reference) != {"name", "key"} or not all(isinstance(part, str) and part for part in parts):
        raise Invalid(f"The reference of {option} must have name and key, of a Secret and of a value in it, and nothing else.", [option])
    name, key = map(str, parts)
    secret = kube.find("v1", "Secret", name, namespace)
    encoded = ((secret or {}).get("data") or {}).get(key)
    if encoded is None:
        raise SecretMissing(f"There is no Secret {namespace}/{name} with the key {key}, which {option} refers to: create it.")
    try:
        return decode(encoded)
    except NotText as error:
        raise Invalid(f"The key {key} of the Secret {namespace}/{name} {error}.", [option]) from None
