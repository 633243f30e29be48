# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an order asks of GitOps: a git repository with its secret, profiles, and where Flux reports to. Checked; it sends nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..common.types import Object
from ..kube.errors import Invalid
from .condition_types import INSTALLED, PROFILES_READY, SOURCE_READY, SYNCED
from .profiles.lock_file import ProfilesLock

REFS = ("branch", "tag", "commit")
DEFAULT_BRANCH = "main"
SECRET_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# The keys of a Secret that Flux reads for a GitRepository. Anything else in the tenant's Secret stays on the hub.
SECRET_KEYS = ("username", "password", "bearerToken", "identity", "identity.pub", "known_hosts", "ca.crt")
HTTP_LOGINS, SSH_LOGINS = (("username", "password"), ("bearerToken",)), (("identity", "known_hosts"),)


@dataclass(frozen=True)
class GitSource:
    """A folder of a git repository. `ref` has one of branch, tag and commit."""

    url: str
    ref: Mapping[str, str]
    path: str = "./"
    secret: str = ""  # the name of the Secret on the hub

    @property
    def host(self) -> str:
        return str(_split(self.url).hostname)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> GitSource:
        """From the option `source`; Invalid says what is wrong with it, and repeats no password."""
        url, given = str(options.get("url") or ""), options.get("ref") or {}
        parts = _split(url)
        if parts.scheme not in ("http", "https", "ssh") or not parts.hostname:
            raise Invalid("source.url must be an http, https or ssh address of a git repository.", ["source"])
        if parts.password or (parts.username and parts.scheme != "ssh"):
            raise Invalid("source.url has credentials in it: store them in a Secret, and name that in source.secretRef.", ["source"])
        ref = {name: str(given[name]) for name in REFS if given.get(name)}
        if len(ref) > 1:
            raise Invalid(f"source.ref has {' and '.join(ref)}: give only one.", ["source"])
        secret = str((options.get("secretRef") or {}).get("name") or "")
        if secret and not SECRET_NAME.fullmatch(secret):
            raise Invalid("source.secretRef.name must be the name of a Secret; it is in the namespace of the order.", ["source"])
        return cls(url, ref or {"branch": DEFAULT_BRANCH}, str(options.get("path") or "./"), secret)


@dataclass(frozen=True)
class Notifications:
    """Where the notifications of one cluster go, and the key that signs them. `ca` is the certificate authority of the address."""

    address: str
    key: str = field(repr=False)
    ca: str = ""


@dataclass(frozen=True)
class GitOpsRequest:
    """What one cluster is to have. `secret` is the data of the Secret for the source, in base64; `lock` has the profiles."""

    source: GitSource | None = None
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    lock: ProfilesLock = field(default_factory=ProfilesLock)
    notifications: Notifications | None = None

    def conditions(self, *, from_hub: bool) -> tuple[str, ...]:
        """The conditions that the order has with this request. Flux of the hub is not installed by the order."""
        source = (SOURCE_READY, SYNCED) if self.source else ()
        return (*(() if from_hub else (INSTALLED,)), *source, *((PROFILES_READY,) if self.lock.profiles else ()))


def secret_data(source: GitSource, secret: Object | None, namespace: str) -> dict[str, str]:
    """What the cluster gets of the tenant's Secret; Invalid says what the Secret lacks, and repeats no value."""
    called = f"The Secret {source.secret} of source.secretRef"
    if secret is None:
        raise Invalid(f"{called} does not exist: create it in the namespace {namespace}.", ["source"])
    data = {key: str(value) for key, value in (secret.get("data") or {}).items() if key in SECRET_KEYS and value}
    ssh = _split(source.url).scheme == "ssh"
    logins = SSH_LOGINS if ssh else HTTP_LOGINS
    if not any(all(key in data for key in login) for login in logins) and (ssh or "ca.crt" not in data):
        needed = " or ".join(" and ".join(login) for login in logins)
        raise Invalid(f"{called} has no credentials for {'an ssh' if ssh else 'an http'} address: it needs {needed}.", ["source"])
    return data


def _split(url: str) -> Any:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
