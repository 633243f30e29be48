# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documents that clusters share in a bucket: their keys, their identity, and how they are read and written.

    <bucket>/drpc-<namespace>-<name>/{lock,state,decision,history/<epoch>-<revision>}
    <bucket>/clusters/<cluster>/status

Each document has an identity, because two names can make the same key (`a-b`+`c` and `a`+`b-c`). Each has a nonce that
no other write has: a writer recognises its own write by it, and a watcher notices a write that changes nothing else.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..s3.errors import BadOptions, Malformed, WrongIdentity
from ..s3.store import ObjectStore, StoredObject

Content = dict[str, Any]

NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
REPAIR = "Find out what wrote it, and restore or delete the object; coordination stops until then."


def validate_name(option: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadOptions(
            f"{option} {name!r} is not a valid name: use lower-case letters, digits, dots and dashes, with a letter or digit at both ends."
        )
    return name


@dataclass(frozen=True, order=True)
class WorkloadRef:
    """A workload that clusters elect a leader for, by namespace and name of its DRPlacementControl."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        validate_name("namespace", self.namespace)
        validate_name("name", self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def key(self, part: str) -> str:
        return f"drpc-{self.namespace}-{self.name}/{part}"

    def identity(self) -> dict[str, str]:
        return {"namespace": self.namespace, "name": self.name}


@dataclass(frozen=True)
class Document:
    """The content of an object, and the object."""

    content: Content
    stored: StoredObject


class DocumentStore:
    """The documents of one identity."""

    def __init__(self, store: ObjectStore, identity: Mapping[str, str]) -> None:
        self.store = store
        self._identity = dict(identity)

    def read(self, key: str, known: Document | None = None) -> Document | None:
        """Return the document, None if there is none, or `known` itself if it is unchanged."""
        stored = self.store.get(key, known.stored if known else None)
        if stored is None or (known and stored is known.stored):
            return known if stored else None
        return Document(self._content(key, stored), stored)

    def write(self, key: str, content: Content, known: Document | None) -> Document:
        """Replace `known`, or create the document if `known` is None."""
        complete = self._with_identity(content)
        body = json.dumps(complete, sort_keys=True).encode()
        return Document(complete, self.store.replace(key, body, known.stored) if known else self.store.create(key, body))

    def _with_identity(self, content: Content) -> Content:
        return content | {"identity": self._identity, "nonce": secrets.token_hex(16)}

    def _content(self, key: str, stored: StoredObject) -> Content:
        try:
            content = json.loads(stored.body)
        except ValueError as error:
            raise Malformed(f"{key} is not JSON. {REPAIR}") from error
        if not isinstance(content, dict) or "identity" not in content:
            raise Malformed(f"{key} was not written by this collection. {REPAIR}")
        if content["identity"] != self._identity:
            theirs, ours = json.dumps(content["identity"]), json.dumps(self._identity)
            raise WrongIdentity(f"{key} belongs to {theirs}, not to {ours}. Rename one of the two, or use another bucket.")
        return content


def required_field(document: Document, key: str, name: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:
    """A field that must exist and have this type."""
    value = document.content.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Malformed(f"{key} has no valid field {name}. {REPAIR}")
    return value
