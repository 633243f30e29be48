# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Secrets that the parameters of a cluster refer to, on their way from the tenant's namespace at home to the hub. Pure.

The home cluster copies the referenced keys, and no others, into one Secret in the namespace of the hub, named by the uid of the cluster.
The agent writes them on the hub as Secrets of the same names. Both ends use this file. No message has a value.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..common.types import Object
from ..templates.parameters import REFERENCE
from ..templates.secret_references import KEY, MAX_SECRETS, NAME
from .kinds import GROUP, hub_namespace

LABEL = f"{GROUP}/cluster-secrets"  # on the Secret in the namespace of the hub; its value is empty
MAX_BYTES = 1024 * 1024 - 64 * 1024  # a Secret has at most 1 MiB, with its keys and its metadata
MAX_DEPTH = 32


class SecretsRefused(Exception):
    """The Secrets cannot be copied. The message is one sentence for the tenant, without a value."""


@dataclass(frozen=True, order=True)
class Reference:
    """A key of a Secret in the namespace of the tenant."""

    name: str
    key: str

    @property
    def data_key(self) -> str:
        """The key of the value in the copy. A hash: both names may have dots, and together they may be longer than a key can be."""
        return hashlib.sha256(f"{self.name}/{self.key}".encode()).hexdigest()


def references(parameters: Mapping[str, Any]) -> tuple[Reference, ...]:
    """All references of the parameters, sorted. Forms that no template accepts are no references: the hub refuses them."""
    found = sorted({each for value in parameters.values() for each in _references(value, 0)})
    if len({each.name for each in found}) > MAX_SECRETS:
        raise SecretsRefused(f"The parameters refer to more than {MAX_SECRETS} Secrets, which is the most that a cluster can have.")
    return tuple(found)


def _references(value: Any, depth: int) -> Iterator[Reference]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        content = value.get(REFERENCE)
        if len(value) == 1 and isinstance(content, dict) and set(content) == {"name", "key"}:
            name, key = content["name"], content["key"]
            if isinstance(name, str) and isinstance(key, str) and NAME.fullmatch(name) and KEY.fullmatch(key):
                yield Reference(name, key)
            return
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(each, depth + 1)


def copy_of(hub: str, uid: str, wanted: tuple[Reference, ...], find: Callable[[str], Object | None]) -> Object:
    """The Secret with the values, for the namespace of the hub. `find` returns a Secret of the tenant by its name."""
    data: dict[str, str] = {}
    for each in wanted:
        secret = find(each.name)
        if secret is None:
            raise SecretsRefused(
                f"The parameters refer to the Secret {each.name}, which does not exist: create it with the key {each.key}."
            )
        value = (secret.get("data") or {}).get(each.key)
        if value is None:
            raise SecretsRefused(f"The parameters refer to the key {each.key}, which the Secret {each.name} does not have: add it.")
        data[each.data_key] = value
    if sum(len(key) + len(value) for key, value in data.items()) > MAX_BYTES:
        raise SecretsRefused(f"The Secrets that the parameters refer to are larger than {MAX_BYTES:,} bytes together.")
    metadata = {"name": uid, "namespace": hub_namespace(hub), "labels": {LABEL: ""}}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}


def secrets_of(copied: Object | None, wanted: tuple[Reference, ...]) -> dict[str, dict[str, str]]:
    """The data of each Secret on the hub, by its name, in base64. SecretsRefused while the copy lacks a referenced value."""
    data = (copied or {}).get("data") or {}
    found: dict[str, dict[str, str]] = {}
    for each in wanted:
        value = data.get(each.data_key)
        if not isinstance(value, str) or not _is_base64(value):
            raise SecretsRefused(f"The home cluster has not sent the key {each.key} of the Secret {each.name} yet.")
        found.setdefault(each.name, {})[each.key] = value
    return found


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
