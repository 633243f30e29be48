"""What a write frees is found although the answer to the write before was lost: the version read is passed on before the one written."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.queueing_hints import quota_freed
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.recording_kube import RecordingKube
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, QUOTA
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota_store import QuotaStore
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target

RESERVED = {uid: {"name": uid, "amounts": {"clusters": 1}} for uid in ("a", "b")}


def quota(version: int, *uids: str) -> Object:
    status = {"reservations": {uid: RESERVED[uid] for uid in uids}, "used": {"clusters": len(uids)}}
    metadata = {"namespace": "team", "name": "default", "uid": "q", "resourceVersion": str(version), "managedFields": []}
    return {"apiVersion": API_VERSION, "kind": QUOTA, "metadata": metadata, "status": status}


def test_what_a_write_frees_is_found_although_the_cache_missed_the_write_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache has version 1, the answer with version 2 was lost, and a cluster was refused by it. Version 3 frees no more than that."""
    monkeypatch.setattr(Kube, "get", lambda *_what: quota(2, "a", "b"))
    monkeypatch.setattr(Kube, "patch", lambda *_what, **_how: quota(3, "b"))
    seen = [quota(1, "a")]
    QuotaStore(RecordingKube(Target("http://home.example.com"), seen.append)).release("team", ["a"])
    assert [each["metadata"]["resourceVersion"] for each in seen] == ["1", "2", "3"]
    assert [quota_freed(before, after) for before, after in itertools.pairwise(seen)] == [False, True]


def test_reader_keeps_what_the_cache_drops_and_other_kinds_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, seen = quota(1), list[Any]()
    monkeypatch.setattr(Kube, "get", lambda *_what: answer)
    kube = RecordingKube(Target("http://home.example.com"), seen.append)
    assert kube.find(API_VERSION, QUOTA, "default", "team") is answer
    del seen[0]["metadata"]["managedFields"]
    assert "managedFields" in answer["metadata"]
    kube.find(API_VERSION, CLUSTER, "demo", "team")
    kube.find("v1", QUOTA, "default", "team")
    assert len(seen) == 1
