"""Requests for kubeconfigs: what the facade asks, what the agent answers, and what neither accepts."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig_request import (
    LABEL,
    TYPE,
    BadRequest,
    KubeconfigAnswer,
    KubeconfigRequest,
    is_request,
    is_too_old,
    kubeconfig_for,
)

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
REQUEST = KubeconfigRequest("uid-1", "anna@example.com", 900)


def test_the_agent_reads_what_the_facade_asks() -> None:
    secret = REQUEST.to_secret("east")
    assert secret["metadata"]["namespace"] == "hub-east"
    assert is_request(secret)
    assert KubeconfigRequest.from_secret(secret) == REQUEST
    assert secret["metadata"]["name"] != REQUEST.to_secret("east")["metadata"]["name"]


def request(user: bytes = b"anna", seconds: bytes = b"900", uid: str = "uid-1") -> dict[str, Any]:
    data = {"user": base64.b64encode(user).decode(), "expirationSeconds": base64.b64encode(seconds).decode()}
    return {"type": TYPE, "metadata": {"labels": {LABEL: uid}}, "data": data}


@pytest.mark.parametrize(
    "secret",
    [
        {"metadata": {}},
        request(uid=""),
        request(user=b""),
        request(user=b"\xff"),
        request(user=b"a" * 2000),
        request(seconds=b""),
        request(seconds=b"-900"),
        request(seconds=b"599"),
        request(seconds=b"86401"),
        request(seconds=b"9" * 5000),
        request(seconds="٩٠٠".encode()),
    ],
)
def test_an_invalid_request_is_refused(secret: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        KubeconfigRequest.from_secret(secret)


def test_the_account_of_a_user_is_a_valid_name_and_no_other_user_has_it() -> None:
    accounts = {KubeconfigRequest("uid", user).account for user in ("anna", "Anna", "system:serviceaccount:a:b", "ä\n/..")}
    assert len(accounts) == 4
    assert all(len(each) <= 63 and each.removeprefix("openfleet-").isalnum() for each in accounts)


def test_the_facade_reads_what_the_agent_answers() -> None:
    secret = REQUEST.to_secret("east")
    assert KubeconfigAnswer.from_secret(secret) is None
    answer = KubeconfigAnswer(kubeconfig_for("demo", {"server": "https://api:6443"}, "token-1"), expires_at=NOW)
    answered = answer.apply_to(secret)
    assert KubeconfigAnswer.from_secret(answered) == answer
    assert KubeconfigRequest.from_secret(answered) == REQUEST
    assert "token-1" not in repr(answer)
    refused = KubeconfigAnswer(error="The cluster is not Ready.")
    assert KubeconfigAnswer.from_secret(refused.apply_to(secret)) == refused


@pytest.mark.parametrize(("age", "expected"), [(timedelta(minutes=4), False), (timedelta(minutes=6), True), (-timedelta(hours=1), False)])
def test_requests_are_deleted_after_five_minutes(age: timedelta, expected: bool) -> None:
    assert is_too_old({"metadata": {"creationTimestamp": format_time(NOW - age)}}, NOW) is expected


def test_a_kubeconfig_has_the_token_and_nothing_else_of_the_administrator() -> None:
    cluster = {"server": "https://api:6443", "certificate-authority-data": "Q0E=", "insecure-skip-tls-verify": True}
    found = json.loads(kubeconfig_for("demo", cluster, "token-1"))
    assert found["clusters"] == [{"name": "demo", "cluster": {"server": "https://api:6443", "certificate-authority-data": "Q0E="}}]
    assert found["users"] == [{"name": "demo", "user": {"token": "token-1"}}]
    assert found["current-context"] == "demo"


@pytest.mark.parametrize(
    "kubeconfig",
    [
        "no kubeconfig",
        "{",
        "[]",
        kubeconfig_for("demo", {"server": "https://api:6443"}, ""),
        kubeconfig_for("demo", {"server": "https://api:6443"}, "x").replace('"token": "x"', '"exec": {"command": "sh"}'),
        kubeconfig_for("demo", {"server": "https://api:6443"}, "x").replace('"token": "x"', '"tokenFile": "/etc/shadow"'),
        "a: &a [1]\nb: *a\n" * 2,
    ],
)
def test_a_hostile_answer_never_reaches_the_user(kubeconfig: str) -> None:
    answered = KubeconfigAnswer(kubeconfig).apply_to(REQUEST.to_secret("east"))
    found = KubeconfigAnswer.from_secret(answered)
    assert found is not None
    assert found.kubeconfig == ""
    assert "cannot be used" in found.error
