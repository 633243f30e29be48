# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run made on the platform, kept in a Secret on the hub: objects by kind and id, roles, and salted hashes of secrets.

Before a run creates anything, it records what it is about to create (`pending`); afterwards it records the ids. A run that was killed
in between leaves pending names, and the next run recognizes what they became. A secret is never stored, only its hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import Conflict
from .errors import OtherRun, PlatformError

KEY = "ledger.json"
ROUNDS = 20_000  # of the hash: a few secrets a run, and a reader of the Secret has to guess each
Pending = tuple[str, str, str]  # kind, scope and name


@dataclass
class Entry:
    """An object on the platform. `owned` objects were made by a run, and are deleted when they leave the document."""

    name: str
    scope: str = ""
    created: str = ""
    owned: bool = True
    secrets: dict[str, str] = field(default_factory=dict)
    # The survey that was written, and when its template was last modified then.
    survey: str = ""
    modified: str = ""


@dataclass
class Ledger:
    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    entries: dict[str, dict[int, Entry]] = field(default_factory=dict)
    pending: set[Pending] = field(default_factory=set)
    grants: dict[str, str] = field(default_factory=dict)  # role, principal: how it is called
    exists: bool = False

    def entry(self, kind: str, identity: int) -> Entry | None:
        return self.entries.get(kind, {}).get(identity)

    def put(self, kind: str, identity: int, entry: Entry) -> None:
        self.entries.setdefault(kind, {})[identity] = entry

    def forget(self, kind: str, identity: int) -> None:
        self.entries.get(kind, {}).pop(identity, None)

    def kinds(self) -> set[str]:
        return {kind for kind, entries in self.entries.items() if entries} | {kind for kind, _scope, _name in self.pending}

    def is_empty(self) -> bool:
        return not self.kinds() and not self.grants

    def digest(self, path: str, value: Any) -> str:
        """The salted hash of a secret; the same value elsewhere has another."""
        text = json.dumps(value, sort_keys=True).encode()
        return hashlib.pbkdf2_hmac("sha256", text, f"{self.salt}/{path}".encode(), ROUNDS).hex()[:32]

    def knows(self, kind: str, identity: int, path: str, value: Any) -> bool:
        """Whether this is the secret that was last written there."""
        entry = self.entry(kind, identity)
        known = entry.secrets.get(path, "") if entry else ""
        return bool(known) and hmac.compare_digest(known, self.digest(path, value))

    def to_text(self) -> str:
        content = {
            "salt": self.salt,
            "entries": {kind: {str(key): asdict(entry) for key, entry in found.items()} for kind, found in self.entries.items() if found},
            "pending": sorted(self.pending),
            "grants": self.grants,
        }
        return json.dumps(content, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Ledger:
        content = json.loads(text)
        return cls(
            salt=str(content["salt"]),
            entries={
                kind: {int(key): Entry(**entry) for key, entry in found.items()} for kind, found in content.get("entries", {}).items()
            },
            pending={(each[0], each[1], each[2]) for each in content.get("pending", [])},
            grants=dict(content.get("grants", {})),
            exists=True,
        )


class LedgerStore:
    """The Secret with the ledger. Without one, the ledger is empty, and a run rebuilds it from what equals the document."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self._kube = kube
        self._namespace, self._name = namespace, name
        self._secret: Object | None = None

    def read(self) -> Ledger:
        self._secret = self._kube.find("v1", "Secret", self._name, self._namespace)
        if self._secret is None:
            return Ledger()
        try:
            return Ledger.from_text(base64.b64decode((self._secret.get("data") or {})[KEY]).decode())
        except (ValueError, KeyError, TypeError):
            raise PlatformError(
                f"The Secret {self._namespace}/{self._name} is not a ledger: delete it, and the next run rebuilds it from what equals "
                "the document; or set another name as ledger."
            ) from None

    def begin(self, ledger: Ledger) -> None:
        """Write the ledger before a run changes anything. OtherRun if it has changed since it was read."""
        try:
            self._write(ledger)
        except Conflict as error:
            raise OtherRun(
                f"Another run has just written the ledger {self._namespace}/{self._name}: run this again when that one has ended."
            ) from error

    def update(self, change: Callable[[Ledger], None]) -> None:
        """Record what a run has done. What another run has recorded meanwhile stays."""

        def attempt() -> None:
            ledger = self.read()
            change(ledger)
            self._write(ledger)

        retry_on_conflict(attempt)

    def delete(self) -> None:
        if self._secret is not None:
            self._kube.delete(self._secret, checked=True)

    def _write(self, ledger: Ledger) -> None:
        data = {KEY: base64.b64encode(ledger.to_text().encode()).decode()}
        if self._secret is None:
            labels = {"app.kubernetes.io/managed-by": "openfleet.clusters"}
            metadata = {"name": self._name, "namespace": self._namespace, "labels": labels}
            self._secret = self._kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data})
        else:
            self._secret = self._kube.patch(self._secret, {"data": data})
        ledger.exists = True
