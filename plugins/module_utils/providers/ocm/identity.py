# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Identity providers from OpenShift's own notation to that of OpenShift Cluster Manager. Pure; it talks to nobody."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from ...common.types import Object
from ...kube.errors import Invalid
from ..model import IdentityProvider
from .model import HIDDEN, without_secrets

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


def identity_body(provider: IdentityProvider) -> Object:
    """The identity provider as the service takes it, without the users of an HTPasswd one."""
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
    """Hashed passwords by user, from the file that OpenShift takes."""
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
    """Changes with anything of the identity provider: the service never gives back its secrets to compare them."""
    content = [provider.type, dict(provider.settings), dict(provider.secrets)]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def noted_as(name: str) -> str:
    """The key in the Secret under which the digest is kept; the name itself may have any characters."""
    return f"identity-provider.{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def comparable(body: Object) -> Object:
    """What the service shows of an identity provider: without what it never gives back."""

    def visible(value: Any) -> Any:
        return {key: visible(inner) for key, inner in value.items() if inner != HIDDEN} if isinstance(value, dict) else value

    return dict(visible(without_secrets(body)))


def _snake(value: Any) -> Any:
    """clientID becomes client_id, in objects inside others too."""
    if isinstance(value, dict):
        names = {key: re.sub(r"(?<=[a-z0-9])([A-Z]+)", r"_\1", key).lower() for key in value}
        return {names[key]: inner if key in FREE else _snake(inner) for key, inner in value.items()}
    return [_snake(inner) for inner in value] if isinstance(value, list) else value
