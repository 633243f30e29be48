# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Identity providers of a cluster in OpenShift Cluster Manager: translated from OpenShift's own notation, added, changed, removed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ...common.types import Object
from ...kube.errors import Invalid
from ...lock.fenced_writer import Change, FencedWriter, holds
from ..model import IdentityProvider
from .api import segment
from .fenced_api import FencedApi
from .redaction import HIDDEN, without_secrets
from .secret import AccessSecret

KIND, USER_KIND = "IdentityProvider", "HTPasswdUser"
# By OpenShift's name of a type: the service's, and the field that its settings are in.
TYPES = {
    "GitHub": ("GithubIdentityProvider", "github"),
    "GitLab": ("GitlabIdentityProvider", "gitlab"),
    "Google": ("GoogleIdentityProvider", "google"),
    "HTPasswd": ("HTPasswdIdentityProvider", "htpasswd"),
    "LDAP": ("LDAPIdentityProvider", "ldap"),
    "OpenID": ("OpenIDIdentityProvider", "open_id"),
}
# Settings whose keys are the user's own.
FREE = ("extraAuthorizeParameters",)


class IdentityProviders:
    """The identity providers of one cluster."""

    def __init__(self, service: FencedApi, cluster_path: str) -> None:
        self._service = service
        self._path = f"{cluster_path}/identity_providers"

    def apply(self, wanted: IdentityProvider, secret: AccessSecret, writer: FencedWriter) -> list[Change]:
        """Have this identity provider. The service never returns secrets, so the Secret records a digest of what was sent.

        Returns what changed in the Secret.
        """
        body, users, name = identity_body(wanted), htpasswd_users(wanted), wanted.name
        self._service.api.hide([*wanted.secrets.values(), *users.values()])
        found = self._find(name)
        key, sent = digest_key(name), digest(wanted)
        if found is not None and found.get("type") != body["type"]:
            raise Invalid(
                f"The identity provider {name} of {self._service.name} is of another type, {found.get('type')}; remove it first.", ["type"]
            )
        if found is not None and secret.content.get(key) == sent and holds(without_secrets(found), comparable(body)):
            return []
        # The digest is removed first and recorded last: after a run that was killed between, the next run sends everything again.
        secret.forget(writer, key)
        if found is None:
            found = self._service.post(self._path, KIND, name, body)
        else:
            self._service.patch(self._path_of(found), KIND, name, found, {field: value for field, value in body.items() if field != "name"})
        if users and "id" in found:
            self._apply_users(f"{self._path_of(found)}/htpasswd_users", users)
        return secret.record(writer, {key: sent})

    def remove(self, name: str) -> None:
        if found := self._find(name):
            self._service.delete(self._path_of(found), KIND, name, found)

    def _find(self, name: str) -> Object | None:
        found = self._service.api.list_all(self._path, f"list identity providers of {self._service.name}")
        return next((item for item in found if item.get("name") == name), None)

    def _path_of(self, found: Object) -> str:
        return f"{self._path}/{segment(found['id'])}"

    def _apply_users(self, path: str, users: Mapping[str, str]) -> None:
        """Have exactly these users. Their passwords can't be compared, so they are set."""
        listed = self._service.api.list_all(path, f"list htpasswd users of {self._service.name}")
        present = {str(user.get("username")): user for user in listed}
        for user, password in users.items():
            if user in present:
                self._service.patch(f"{path}/{segment(present[user]['id'])}", USER_KIND, user, {}, {"hashed_password": password})
            else:
                self._service.post(path, USER_KIND, user, {"username": user, "hashed_password": password})
        for user, found in present.items():
            if user not in users:
                self._service.delete(f"{path}/{segment(found['id'])}", USER_KIND, user, {})


def identity_body(provider: IdentityProvider) -> Object:
    """The identity provider in the service's notation, without the users of an HTPasswd one."""
    kind, field = TYPES[provider.type]
    settings = {key: value for key, value in provider.settings.items() if key != "mappingMethod"}
    secrets = {} if provider.type == "HTPasswd" else dict(provider.secrets)
    return {
        "name": provider.name,
        "type": kind,
        "mapping_method": provider.settings.get("mappingMethod") or "claim",
        field: _snake({**settings, **secrets}),
    }


def htpasswd_users(provider: IdentityProvider) -> dict[str, str]:
    """Hashed passwords by user, from the file that OpenShift reads."""
    users: dict[str, str] = {}
    for number, line in enumerate(provider.secrets.get("htpasswd", "").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, password = line.strip().partition(":")
        if not (user and colon and password):
            raise Invalid(f"Line {number} of the htpasswd file of {provider.name} is not <user>:<hashed password>.", ["htpasswd"])
        users[user] = password
    return users


def digest(provider: IdentityProvider) -> str:
    """Changes with anything of the identity provider: the service never returns its secrets to compare them."""
    content = [provider.type, dict(provider.settings), dict(provider.secrets)]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def digest_key(name: str) -> str:
    """The key of the digest in the Secret; the name itself may have any characters."""
    return f"identity-provider.{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def comparable(body: Object) -> Object:
    """What the service shows of an identity provider: everything but secrets."""

    def visible(value: Any) -> Any:
        return {key: visible(inner) for key, inner in value.items() if inner != HIDDEN} if isinstance(value, dict) else value

    return dict(visible(without_secrets(body)))


def _snake(value: Any) -> Any:
    """clientID becomes client_id, in objects inside others too."""
    if isinstance(value, dict):
        names = {key: re.sub(r"(?<=[a-z0-9])([A-Z]+)", r"_\1", key).lower() for key in value}
        return {names[key]: inner if key in FREE else _snake(inner) for key, inner in value.items()}
    return [_snake(inner) for inner in value] if isinstance(value, list) else value
