# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What clusters agree on through a bucket: the names of its objects, and the documents in them. How they agree is in the files beside this.

    <bucket>/drpc-<namespace>-<name>/{lock,state,decision,history/<epoch>-<revision>}
    <bucket>/clusters/<cluster>/status

Each document says whom it is for, because names can make the same key (`a-b`+`c` and `a`+`b-c`), and has a number that no other write has:
by it a writer knows its own write again, and a watcher sees that something was written although nothing else has changed.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..s3.errors import BadOptions, Malformed, WrongIdentity
from ..s3.store import ObjectStore, Stored

Content = dict[str, Any]

NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def awake(clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) -> float:
    """Seconds on a clock that nobody sets and that goes on while the machine sleeps: a leader must know for how long it slept."""
    return time.clock_gettime(clock)


@functools.cache
def machine() -> str:
    """Which machine it is, and since which start of it, that `awake` counts on. Empty where that cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def now() -> str:
    """The time of day, for people to read; nothing is ever decided by it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def checked_name(what: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadOptions(f"{what} {name!r} is no name: small letters, digits, dots and dashes, with a letter or digit at both ends.")
    return name


@dataclass(frozen=True, order=True)
class Place:
    """What is agreed on: one placement control, by namespace and name."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        checked_name("namespace", self.namespace)
        checked_name("name", self.name)

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
    stored: Stored


class Documents:
    """The documents of one identity."""

    def __init__(self, store: ObjectStore, identity: Mapping[str, str]) -> None:
        self.store = store
        self._identity = dict(identity)

    def read(self, key: str, known: Document | None = None) -> Document | None:
        """None if there is none, `known` itself if nothing has changed since."""
        stored = self.store.get(key, known.stored if known else None)
        if stored is None or (known and stored is known.stored):
            return known if stored else None
        return Document(self._content(key, stored), stored)

    def write(self, key: str, content: Content, known: Document | None) -> Document:
        """Write over what must still be `known`, or with None what must not be there yet."""
        whole = self._signed(content)
        body = json.dumps(whole, sort_keys=True).encode()
        return Document(whole, self.store.replace(key, body, known.stored) if known else self.store.create(key, body))

    def _signed(self, content: Content) -> Content:
        return content | {"identity": self._identity, "nonce": secrets.token_hex(16)}

    def _content(self, key: str, stored: Stored) -> Content:
        try:
            content = json.loads(stored.body)
        except ValueError as error:
            raise Malformed(f"{key} is no JSON. Find out who has written it; nothing goes on before it is put right.") from error
        if not isinstance(content, dict) or "identity" not in content:
            raise Malformed(f"{key} was not written by this collection. Find out who has; nothing goes on before it is put right.")
        if content["identity"] != self._identity:
            theirs, ours = json.dumps(content["identity"]), json.dumps(self._identity)
            raise WrongIdentity(f"{key} belongs to {theirs}, and not to {ours}. Rename one of the two, or use another bucket.")
        return content


def field(document: Document, key: str, name: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:
    """A field that must be there and of that type."""
    value = document.content.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Malformed(f"{key} has no {name} that can be used. Find out who has written it; nothing goes on before it is put right.")
    return value
