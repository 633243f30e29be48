"""Identity providers in OpenShift's notation and in that of OpenShift Cluster Manager: tables of cases, without the service."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import IdentityProvider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.identity import digest, htpasswd_users, identity_body


@pytest.mark.parametrize(
    ("kind", "settings", "secrets", "wanted"),
    [
        ("GitHub", {"clientID": "c", "organizations": ["o"]}, {"clientSecret": "s"},
         {"github": {"client_id": "c", "organizations": ["o"], "client_secret": "s"}}),
        ("LDAP", {"url": "u", "bindDN": "d", "attributes": {"preferredUsername": ["p"]}}, {"bindPassword": "s"},
         {"ldap": {"url": "u", "bind_dn": "d", "attributes": {"preferred_username": ["p"]}, "bind_password": "s"}}),
        ("OpenID", {"extraAuthorizeParameters": {"myKey": "v"}, "extraScopes": ["s"]}, {},
         {"open_id": {"extra_authorize_parameters": {"myKey": "v"}, "extra_scopes": ["s"]}}),
        ("HTPasswd", {}, {"htpasswd": "a:b"}, {"htpasswd": {}}),
    ],
)  # fmt: skip
def test_identity_provider_in_the_words_of_the_service(
    kind: str, settings: dict[str, Any], secrets: dict[str, str], wanted: dict[str, Any]
) -> None:
    body = identity_body(IdentityProvider("i", kind, settings, secrets))
    assert {key: body[key] for key in body if key not in ("name", "type", "mapping_method")} == wanted
    assert (body["name"], body["mapping_method"]) == ("i", "claim")


def test_mapping_method_is_beside_the_settings() -> None:
    body = identity_body(IdentityProvider("i", "Google", {"clientID": "c", "mappingMethod": "lookup"}))
    assert (body["mapping_method"], body["google"]) == ("lookup", {"client_id": "c"})


def test_digest_changes_with_a_secret_and_only_then() -> None:
    one = IdentityProvider("i", "Google", {"a": 1, "b": 2}, {"clientSecret": "s"})
    assert digest(one) == digest(IdentityProvider("i", "Google", {"b": 2, "a": 1}, {"clientSecret": "s"}))
    assert digest(one) != digest(IdentityProvider("i", "Google", {"a": 1, "b": 2}, {"clientSecret": "t"}))


def test_password_with_colons_is_whole() -> None:
    assert htpasswd_users(IdentityProvider("i", "HTPasswd", {}, {"htpasswd": "\nann:$6$a:b\n"})) == {"ann": "$6$a:b"}
