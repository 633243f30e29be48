# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Identity providers in the configuration of a HostedCluster, beside those that other writers have added. Pure; it sends nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...common.types import Object
from ...kube.errors import Invalid
from ..base import ClusterRef
from ..model import IdentityProvider
from ..objects import secret

# An annotation with the names of the identity providers of the last request. All others were added by other writers,
# and stay.
CONFIGURED = "openfleet.clusters/configured-identity-providers"
# For each type of identity provider: the field of its settings, and the one in them that names its secret.
IDENTITY_PROVIDERS = {
    "GitHub": ("github", "clientSecret"),
    "GitLab": ("gitlab", "clientSecret"),
    "Google": ("google", "clientSecret"),
    "HTPasswd": ("htpasswd", "fileData"),
    "LDAP": ("ldap", "bindPassword"),
    "OpenID": ("openID", "clientSecret"),
}
SECRET_KEYS = {"fileData": "htpasswd"}  # elsewhere the key of the secret has the name of the field


def identity_entry(ref: ClusterRef, wanted: IdentityProvider) -> tuple[Object, Object | None]:
    """The entry for the HostedCluster, and the secret that it names."""
    if wanted.type not in IDENTITY_PROVIDERS:
        raise Invalid(f"There is no identity provider of type {wanted.type}; it is one of {', '.join(IDENTITY_PROVIDERS)}.", ["type"])
    section, reference = IDENTITY_PROVIDERS[wanted.type]
    key = SECRET_KEYS.get(reference, reference)
    if set(wanted.secrets) - {key}:
        raise Invalid(f"An identity provider of type {wanted.type} has one secret, {key}.", ["secrets"])
    settings, content = dict(wanted.settings), None
    if wanted.secrets:
        content = secret(ref, identity_secret_name(ref, wanted.name), wanted.secrets)
        settings[reference] = {"name": content["metadata"]["name"]}
    return {"name": wanted.name, "mappingMethod": "claim", "type": wanted.type, section: settings}, content


def identity_secret_name(ref: ClusterRef, name: str) -> str:
    return f"{ref.name}-idp-{name.lower()}"


def _oauth(cluster: Object) -> Object:
    return ((cluster.get("spec") or {}).get("configuration") or {}).get("oauth") or {}


def identity_providers(cluster: Object) -> list[Object]:
    return list(_oauth(cluster).get("identityProviders") or [])


def names_of(providers: Sequence[Object]) -> list[str]:
    return [str(item["name"]) for item in providers]


def _configured(cluster: Object) -> list[str]:
    """The names of the identity providers of the last request."""
    try:
        return [str(name) for name in json.loads((cluster["metadata"].get("annotations") or {}).get(CONFIGURED, "[]"))]
    except (ValueError, TypeError):
        return []  # another writer has changed it; then nothing is removed


def foreign_providers(wanted: Object, present: Object) -> list[Object]:
    """Those that other writers have added, and that stay. Of two with one name the wanted one counts."""
    ours = {*names_of(identity_providers(wanted)), *_configured(present)}
    return [item for item in identity_providers(present) if item["name"] not in ours]


def with_foreign_providers(wanted: Object, present: Object) -> Object:
    """What to apply: a HostedCluster with the identity providers of other writers behind its own."""
    foreign = foreign_providers(wanted, present) if wanted["kind"] == "HostedCluster" else []
    if not foreign:
        return wanted
    oauth = {**_oauth(wanted), "identityProviders": [*identity_providers(wanted), *foreign]}
    return {**wanted, "spec": {**wanted["spec"], "configuration": {**wanted["spec"].get("configuration", {}), "oauth": oauth}}}


def identity_patch(present: Object, entries: Sequence[Object]) -> Object:
    """The patch that sets these identity providers. It leaves no empty settings: with any, OpenShift removes the first administrator."""
    more = set(_oauth(present)) - {"identityProviders"}
    oauth = {"identityProviders": [*entries] or None} if entries or more else None
    return {"spec": {"configuration": {"oauth": oauth}}}
