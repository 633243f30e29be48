"""What an order asks of GitOps, the objects that this becomes, and the keys that sign notifications."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.notification_key import address_of, is_signed, key_of
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.objects import sync_objects
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.request import GitOpsRequest, GitSource, Notifications, secret_data
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid

HTTPS = GitSource.of({"url": "https://git.example.com/a.git"})
SSH = GitSource.of({"url": "ssh://git@git.example.com/a.git", "secretRef": {"name": "deploy"}})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": ""}, "must be an http, https or ssh address"),
        ({"url": "file:///etc"}, "must be an http, https or ssh address"),
        ({"url": "https://[x"}, "must be an http, https or ssh address"),
        ({"url": "https://ann:hunter2@git.example.com/a.git"}, "credentials in it"),
        ({"url": "https://hunter2@git.example.com/a.git"}, "credentials in it"),
        ({"url": "https://g/a.git", "ref": {"branch": "a", "tag": "b"}}, "has branch and tag: give only one"),
        ({"url": "https://g/a.git", "secretRef": {"name": "../../openfleet-system/secrets/hunter2"}}, "the name of a Secret"),
    ],
)
def test_a_source_that_flux_could_not_use_is_refused_without_its_secrets(options: Any, problem: str) -> None:
    with pytest.raises(Invalid, match=problem) as refused:
        GitSource.of(options)
    assert "hunter2" not in str(refused.value)


def test_the_branch_main_is_followed_by_default() -> None:
    assert HTTPS.ref == {"branch": "main"}
    assert GitSource.of({"url": "https://g/a.git", "ref": {"branch": None, "commit": "abc"}}).ref == {"commit": "abc"}


@pytest.mark.parametrize(
    ("source", "data", "kept"),
    [
        (HTTPS, {"username": "YQ==", "password": "Yg==", "other": "eA=="}, {"username", "password"}),
        (HTTPS, {"bearerToken": "YQ=="}, {"bearerToken"}),
        (HTTPS, {"ca.crt": "YQ=="}, {"ca.crt"}),
        (HTTPS, {"identity": "YQ==", "known_hosts": "YQ=="}, "needs username and password or bearerToken"),
        (HTTPS, {"username": "YQ==", "password": ""}, "needs username and password or bearerToken"),
        (SSH, {"identity": "YQ==", "known_hosts": "YQ==", "identity.pub": "YQ=="}, {"identity", "known_hosts", "identity.pub"}),
        (SSH, {"identity": "YQ=="}, "needs identity and known_hosts"),
        (SSH, {"ca.crt": "YQ=="}, "needs identity and known_hosts"),
        (SSH, None, "The Secret deploy .* does not exist: create it in the namespace orders"),
    ],
)
def test_only_the_credentials_of_the_source_leave_the_hub(source: GitSource, data: Any, kept: Any) -> None:
    secret = None if data is None else {"data": data}
    if isinstance(kept, str):
        with pytest.raises(Invalid, match=kept):
            secret_data(source, secret, "orders")
    else:
        assert set(secret_data(source, secret, "orders")) == kept


def test_flux_follows_the_folder_and_applies_it() -> None:
    request = GitOpsRequest(GitSource.of({"url": "https://g/a.git", "ref": {"tag": "v1"}, "path": "./lab"}), {"username": "YQ=="})
    repository, kustomization, secret = sync_objects(request)
    assert repository["spec"]["ref"] == {"tag": "v1"} and repository["spec"]["secretRef"] == {"name": "flux-system"}
    assert kustomization["spec"]["path"] == "./lab" and kustomization["spec"]["prune"] and "kubeConfig" not in kustomization["spec"]
    assert secret["data"] == {"username": "YQ=="}
    assert {item["metadata"]["namespace"] for item in sync_objects(request)} == {"flux-system"}


def test_from_the_hub_the_objects_are_in_the_working_namespace_and_have_the_kubeconfig() -> None:
    repository, kustomization = sync_objects(GitOpsRequest(HTTPS), "work", from_hub=True)
    assert repository["metadata"]["namespace"] == kustomization["metadata"]["namespace"] == "work"
    assert "secretRef" not in repository["spec"]
    assert kustomization["spec"]["kubeConfig"] == {"secretRef": {"name": "gitops-kubeconfig", "key": "value"}}


def test_the_conditions_are_those_of_what_is_asked_for() -> None:
    assert GitOpsRequest(HTTPS).conditions(from_hub=False) == ("GitOpsInstalled", "GitOpsSourceReady", "GitOpsSynced")
    assert GitOpsRequest().conditions(from_hub=False) == ("GitOpsInstalled",)
    assert GitOpsRequest(HTTPS).conditions(from_hub=True) == ("GitOpsSourceReady", "GitOpsSynced")


def test_notifications_of_every_kind_go_to_the_engine_with_the_key_of_the_cluster() -> None:
    items = sync_objects(GitOpsRequest(notifications=Notifications("https://engine/x", "key-1", "-----BEGIN")))
    assert [item["kind"] for item in items] == ["Secret", "Secret", "Provider", "Alert"]
    token, ca, provider, alert = items
    assert base64.b64decode(token["data"]["token"]) == b"key-1" and base64.b64decode(ca["data"]["ca.crt"]) == b"-----BEGIN"
    assert provider["spec"]["type"] == "generic-hmac" and provider["spec"]["certSecretRef"]["name"] == ca["metadata"]["name"]
    assert {"kind": "HelmRelease", "name": "*"} in alert["spec"]["eventSources"]


def test_a_key_signs_for_one_order_only() -> None:
    body = b"{}"
    signature = "sha256=" + hmac.new(key_of("site", "uid-1").encode(), body, hashlib.sha256).hexdigest()
    assert is_signed("site", "uid-1", body, signature)
    assert not is_signed("site", "uid-2", body, signature)
    assert not is_signed("other", "uid-1", body, signature)
    assert not is_signed("site", "uid-1", b"{ }", signature)
    assert not is_signed("site", "uid-1", body, "\udce4")
    assert key_of("site", "uid-1") != key_of("site", "uid-2")


def test_without_a_key_of_the_site_nothing_is_signed() -> None:
    signature = "sha256=" + hmac.new(key_of("", "uid-1").encode(), b"", hashlib.sha256).hexdigest()
    assert not is_signed("", "uid-1", b"", signature)


def test_the_address_has_the_uid() -> None:
    assert address_of("https://engine:5000/", "u-1") == "https://engine:5000/gitops-notifications/u-1"
