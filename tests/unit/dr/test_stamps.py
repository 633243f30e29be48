"""Which writer may change an object, by the stamp on it."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Refused, Stamp, Superseded
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import (
    DESTINATION,
    DRPC_UID,
    EPOCH,
    REVISION,
    merged,
    position,
    refusal,
    stamped,
)

STAMP = Stamp("ours", 3, 9)


def vrg(annotations: dict[str, str] | None = None) -> Object:
    return {
        "apiVersion": "ramendr.openshift.io/v1alpha1",
        "kind": "VolumeReplicationGroup",
        "metadata": {"name": "shop", "namespace": "apps", "annotations": annotations},
        "spec": {"replicationState": "primary"},
    }


def marked(epoch: str, revision: str, owner: str = "ours") -> Object:
    return vrg({EPOCH: epoch, REVISION: revision, DRPC_UID: owner})


@pytest.mark.parametrize(
    ("epoch", "revision", "newer"),
    [
        ("3", "9", False),
        ("3", "8", False),
        ("2", "100", False),
        ("3", "10", True),  # as text it would be older
        ("10", "1", True),
        ("4", "0", True),
        ("0", "0", False),
    ],
)
def test_newer_stamp_is_never_replaced(epoch: str, revision: str, newer: bool) -> None:
    found = refusal(marked(epoch, revision), STAMP)
    assert isinstance(found, Superseded) is newer
    if isinstance(found, Superseded):
        assert (found.epoch, found.revision) == (int(epoch), int(revision))


@pytest.mark.parametrize("garbage", ["", "x", "-1", "1.0", "0x1", " 1", "1\n", "٣", "9" * 19])
@pytest.mark.parametrize("name", [EPOCH, REVISION])
def test_invalid_stamp_is_not_replaced(name: str, garbage: str) -> None:
    found = refusal(vrg({EPOCH: "1", REVISION: "1", DRPC_UID: "ours"} | {name: garbage}), STAMP)
    assert isinstance(found, Refused)
    assert name in found.why


@pytest.mark.parametrize(
    ("owner", "adopts", "allowed"),
    [
        ("ours", [], True),
        ("theirs", [], False),
        ("theirs", ["theirs"], True),
        ("", [], False),
        ("", [""], True),
        ("third", ["theirs"], False),
    ],
)
def test_object_of_another_owner_is_not_changed(owner: str, adopts: list[str], allowed: bool) -> None:
    existing = vrg({DRPC_UID: owner} if owner else None)
    found = refusal(existing, Stamp("ours", 3, 9, frozenset(adopts)))
    assert (found is None) is allowed


def test_adopted_object_with_a_newer_stamp_is_not_changed() -> None:
    assert isinstance(refusal(marked("4", "1", "theirs"), Stamp("ours", 3, 9, frozenset(["theirs"]))), Superseded)


def test_stamp_has_owner_epoch_revision_and_destination() -> None:
    item = vrg({"example.com/theirs": "kept"})
    new = stamped(item, "west", STAMP)
    assert new["metadata"]["annotations"] == {
        "example.com/theirs": "kept",
        EPOCH: "3",
        REVISION: "9",
        DRPC_UID: "ours",
        DESTINATION: "west",
    }
    assert position(new) == (3, 9)
    assert EPOCH not in item["metadata"]["annotations"]


def test_unstamped_object_is_at_the_beginning() -> None:
    assert position(vrg()) == (0, 0)


def test_update_replaces_the_spec_and_keeps_what_others_wrote() -> None:
    existing = vrg({"example.com/theirs": "kept"})
    existing["spec"]["runFinalSync"] = True
    existing["metadata"] |= {"finalizers": ["x"], "resourceVersion": "5", "labels": {"a": "1"}}
    existing["status"] = {"state": "Primary"}
    new = merged(existing, stamped(vrg(), "west", STAMP))
    assert new["spec"] == {"replicationState": "primary"}
    assert new["metadata"]["annotations"]["example.com/theirs"] == "kept"
    assert (new["metadata"]["finalizers"], new["metadata"]["resourceVersion"], new["metadata"]["labels"]) == (["x"], "5", {"a": "1"})
    assert new["status"] == {"state": "Primary"}
