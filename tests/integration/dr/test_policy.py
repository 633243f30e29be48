"""The shipped policy for stamps on a real API server: epoch and revision of a VolumeReplicationGroup never decrease."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.deployer import DirectDeployer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Deployed, Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import RAMEN, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import EPOCH, REVISION
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid

from ..support.dr_objects import peers_of, vrg
from ..support.kubeconfigs import kubeconfig
from ..support.manifests import manifest


@pytest.fixture(scope="module")
def guarded(hub: Access) -> Iterator[Access]:
    """The hub with the policy in force."""
    objects = [manifest("dr/policy_stamps"), manifest("dr/policy_stamps_binding")]
    for item in objects:
        hub.kube.apply(item, force=True)

    def is_enforced() -> bool:
        try:
            hub.kube.create(marked("default", "x", "1"), dry_run=True)
        except Invalid:
            return True
        return False

    try:
        until(is_enforced, "the policy is in force")
        yield hub
    finally:
        for item in reversed(objects):
            hub.kube.delete(item)


def marked(namespace: str, epoch: str | None, revision: str | None, **spec: Any) -> Object:
    item = vrg(namespace, **spec)
    marks = {EPOCH: epoch, REVISION: revision}
    item["metadata"]["annotations"] = {name: text for name, text in marks.items() if text is not None}
    return item


def refusal(hub: Access, namespace: str, epoch: str | None, revision: str | None) -> str:
    """Why a write with this stamp is refused; empty if it is not."""
    try:
        hub.kube.patch(
            vrg(namespace), {"metadata": {"annotations": {EPOCH: epoch, REVISION: revision}}, "spec": {"action": "Failover"}}, checked=False
        )
    except Invalid as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        (("3", "9"), ("3", "9"), True),
        (("3", "9"), ("3", "10"), True),  # as text it would be smaller
        (("9", "9"), ("10", "1"), True),
        (("3", "9"), ("4", "0"), True),
        ((None, None), ("1", "1"), True),
        (("3", "10"), ("3", "9"), False),
        (("10", "1"), ("9", "9"), False),
        (("3", "9"), ("2", "100"), False),
        (("3", "9"), (None, None), False),
        (("3", "9"), ("4", None), False),
        (("3", "9"), (None, "10"), False),
        ((None, None), ("1", None), False),
        (("3", "9"), ("four", "1"), False),
        (("3", "9"), ("4", "-1"), False),
        (("3", "9"), ("4.0", "1"), False),
        (("3", "9"), ("4", " 1"), False),
        (("3", "9"), ("4\n", "1"), False),
        (("3", "9"), ("", ""), False),
        (("3", "9"), ("4", "9" * 19), False),
        (("3", "9"), ("9" * 18, "9" * 18), True),
    ],
)
def test_epoch_and_revision_never_decrease(
    guarded: Access, namespace: str, before: tuple[str | None, str | None], after: tuple[str | None, str | None], allowed: bool
) -> None:
    guarded.kube.create(marked(namespace, *before))
    refused = refusal(guarded, namespace, *after)
    assert (refused == "") is allowed, refused
    written = guarded.kube.get(RAMEN, VRG, "shop", namespace)
    assert written["spec"].get("action") == ("Failover" if allowed else None)


@pytest.mark.parametrize("stamp", [("3", None), (None, "3"), ("x", "1"), ("1", "1e3")])
def test_object_is_not_created_with_half_a_stamp(guarded: Access, namespace: str, stamp: tuple[str | None, str | None]) -> None:
    with pytest.raises(Invalid, match="must both be decimal numbers"):
        guarded.kube.create(marked(namespace, *stamp))


def test_refusal_names_both_stamps(guarded: Access, namespace: str) -> None:
    guarded.kube.create(marked(namespace, "4", "2"))
    assert "written at epoch 4, revision 2, later than epoch 3, revision 9" in refusal(guarded, namespace, "3", "9")


@pytest.mark.parametrize("stamp", [("3", "9"), (None, None)])
def test_writes_of_the_operator_are_not_affected(guarded: Access, namespace: str, stamp: tuple[str | None, str | None]) -> None:
    """Finalizers, labels, spec and status, each without a word on the stamp."""
    guarded.kube.create(marked(namespace, *stamp))
    item = guarded.kube.patch(vrg(namespace), {"metadata": {"finalizers": ["example.com/x"], "labels": {"a": "b"}}}, checked=False)
    item = guarded.kube.patch(item, {"spec": {"prepareForFinalSync": True}})
    item = guarded.kube.patch(item, {"status": {"state": "Primary"}}, subresource="status")
    item["metadata"]["finalizers"] = []
    item = guarded.kube.replace(item)
    assert (item["status"]["state"], item["spec"]["prepareForFinalSync"]) == ("Primary", True)
    assert guarded.kube.delete(item)


def test_stamp_from_before_the_policy_that_is_no_number_can_stay_and_be_corrected(guarded: Access, namespace: str) -> None:
    policy, binding = manifest("dr/policy_stamps"), manifest("dr/policy_stamps_binding")
    guarded.kube.delete(binding)

    def is_off() -> bool:
        try:
            guarded.kube.create(marked("default", "x", "1"), dry_run=True)
        except Invalid:
            return False
        return True

    until(is_off, "the policy is off")
    guarded.kube.create(marked(namespace, "garbage", "1"))
    guarded.kube.apply(policy, force=True)
    guarded.kube.apply(binding, force=True)
    until(lambda: not is_off(), "the policy is in force")
    item = guarded.kube.patch(vrg(namespace), {"metadata": {"labels": {"a": "b"}}}, checked=False)
    assert item["metadata"]["annotations"][EPOCH] == "garbage"
    assert refusal(guarded, namespace, "rubbish", "1")
    assert refusal(guarded, namespace, "1", "1") == ""


def test_deployer_works_under_the_policy(guarded: Access, namespace: str) -> None:
    deployer = DirectDeployer(peers_of(guarded.kube, namespace, {"east": kubeconfig(guarded)}))
    for revision in (9, 10, 11):
        stamp, final = Stamp("ours", 1, revision), revision == 11
        assert deployer.apply("east", vrg(namespace, runFinalSync=final), stamp) == Deployed(changed=True)
