# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kubeconfigs from Secrets that other accounts can write: validated, and checked for expiry. It sends nothing.

An account that may write such a Secret must gain nothing on the machine that uses it. So a kubeconfig that names a command to run or a
file to read is refused, and nothing of this machine's environment is merged into it. It is read at a bounded cost. No error quotes a
kubeconfig, nor what its server answers.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from ..common import bounded_yaml
from ..common.types import Object
from .config import Target, target
from .errors import BadCredentials

KEY = "kubeconfig"
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
COMMANDS = ("exec", "auth-provider")


class BadKubeconfig(BadCredentials):
    """A Secret has no usable kubeconfig."""


@dataclass(frozen=True)
class Expiry:
    """When credentials expire, and which."""

    moment: datetime
    what: str


def kubeconfig_of(secret: Object, endpoint: str = "", key: str = KEY) -> Object:
    """The kubeconfig in a Secret. An `endpoint` replaces its server's address."""
    called = f"The Secret {secret['metadata']['namespace']}/{secret['metadata']['name']}"
    content = self_contained(_content(secret, key, called), f"{called} has a kubeconfig")
    for cluster in _parts(content, "clusters", "cluster", called) if endpoint else ():
        cluster["server"] = endpoint
    return content


def with_address(content: Object, name: str, address: str) -> Object:
    """The kubeconfig with the address of a server instead of its name, which could have another address the next time.

    The name stays the one that the server's certificate is verified against.
    """
    content = copy.deepcopy(content)
    for cluster in _parts(content, "clusters", "cluster", "This is a kubeconfig"):
        server = urlsplit(str(cluster.get("server", "")))
        if server.hostname != name:
            continue
        host = f"[{address}]" if ":" in address else address
        cluster.setdefault("tls-server-name", name)
        cluster["server"] = server._replace(netloc=f"{host}:{server.port}" if server.port else host).geturl()
    return content


def target_of(kubeconfig: Object, *, foreign: bool = True) -> Target:
    """The cluster that the kubeconfig is for, and the credentials for it; one without any is refused.

    A `foreign` server is one that others have named, and may be no cluster at all: its answers are not repeated.
    """
    self_contained(kubeconfig, "This is a kubeconfig")
    try:
        # Without this process's environment, which is for the hub.
        found = target({"kubeconfig": kubeconfig}, {})
    except BadCredentials as error:
        raise BadKubeconfig(str(error)) from None
    if not (found.token or found.certificate or found.username):
        raise BadKubeconfig(f"The kubeconfig for {found.server} has no credentials; add a token or a client certificate.")
    found.foreign = foreign
    return found


def expiry_of(credentials: Target) -> Expiry | None:
    """The first expiry of the token and the certificate; None where neither has one."""
    known = [expiry for expiry in (_token_expiry(credentials.token), _certificate_expiry(credentials.certificate)) if expiry]
    return min(known, key=lambda expiry: expiry.moment, default=None)


def _content(secret: Object, key: str, called: str) -> Object:
    data = (secret.get("data") or {}).get(key)
    if not data:
        raise BadKubeconfig(f"{called} has no key {key}; set it to the cluster's kubeconfig.")
    try:
        content = bounded_yaml.load(base64.b64decode(data))
    except bounded_yaml.BadYaml as error:
        raise BadKubeconfig(f"{called} has no kubeconfig in the key {key}, because that {error}; set it to the cluster's.") from None
    except (binascii.Error, ValueError):
        content = None
    if not isinstance(content, dict):
        raise BadKubeconfig(f"{called} has no kubeconfig in the key {key}; set it to the cluster's.")
    return content


def self_contained(content: Object, called: str) -> Object:
    """The same kubeconfig. BadKubeconfig if it refers to files or commands: those would be of the machine that uses it."""
    for key, part in (("users", "user"), ("clusters", "cluster")):
        for found in _parts(content, key, part, called):
            if any(found.get(name) for name in COMMANDS):
                raise BadKubeconfig(f"{called} that runs a command to log in, which is refused; use a token or a certificate instead.")
            if any(found.get(name) for name in FILES):
                raise BadKubeconfig(
                    f"{called} that names files; create it again with their content in it (kubectl config view --flatten --raw)."
                )
    return content


def _parts(content: Object, key: str, part: str, called: str) -> Iterator[Object]:
    entries = content.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadKubeconfig(f"{called} whose {key} are not a list of named entries; create it again.")
    for entry in entries:
        found = entry.get(part) or {}
        if not isinstance(found, dict):
            raise BadKubeconfig(f"{called} whose {key} are invalid; create it again.")
        yield found


def _token_expiry(token: str) -> Expiry | None:
    """The exp of a JSON web token. It is not verified: the server does that, and a wrong date only causes a wrong warning."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return Expiry(datetime.fromtimestamp(int(claims["exp"]), UTC), "token")
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return None


def _certificate_expiry(certificate: bytes) -> Expiry | None:
    if not certificate:
        return None
    try:
        from cryptography import x509  # here, because its import takes as long as several requests, and few callers need it
    except ImportError:  # ansible-core requires it; without it only the expiry of certificates is unknown
        return None
    try:
        return Expiry(x509.load_pem_x509_certificate(certificate).not_valid_after_utc, "client certificate")
    except ValueError:
        return None
