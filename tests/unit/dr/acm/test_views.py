"""The answer of a ManagedClusterView: it has no age, so it counts only under conditions."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.views import answer, unavailable, view_of, viewed
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.works import manifest_of, work_of
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import ObjectRef, Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Found, Unauthorized, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import stamped

REF = ObjectRef("ramendr.openshift.io/v1alpha1", "VolumeReplicationGroup", "apps", "shop")
VRG: Object = {"apiVersion": REF.api_version, "kind": REF.kind, "metadata": {"name": "shop", "namespace": "apps"}, "spec": {}}
NOT_FOUND = 'failed to get resource with err: volumereplicationgroups.ramendr.openshift.io "shop" not found'


def at(epoch: int, revision: int) -> Object:
    return stamped(VRG, "west", Stamp("uid", epoch, revision))


def view(status: str = "True", reason: str = "GetResourceProcessing", message: str = "", result: Any = None) -> Object:
    condition = {"type": "Processing", "status": status, "reason": reason, "message": message}
    return view_of("west", REF) | {"status": {"conditions": [condition], "result": result}}


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (view(result=VRG), Found),
        (view(), Unreachable),
        (view("False", "GetResourceFailed", NOT_FOUND), Absent),
        (view("False", "GetResourceFailed", "failed to get resource with err: x is forbidden: no"), Unauthorized),
        (
            view("False", "GetResourceFailed", "failed to get resource with err: the server could not find the requested resource"),
            Unreachable,
        ),
        (view("False", "GetResourceFailed", "failed to get resource with err: etcd timeout"), Unreachable),
        (view("False", "GetResourceFailed"), Unreachable),
        (view("False", "GetResourceTypeInvalid", NOT_FOUND), Unreachable),
        (view_of("west", REF), Unreachable),
    ],
)
def test_view_says_absent_only_if_the_object_was_not_found(seen: Object, kind: type) -> None:
    assert isinstance(answer(seen, None), kind)


@pytest.mark.parametrize(
    ("seen", "wanted", "kind"),
    [
        (view(result=at(2, 5)), at(2, 5), Found),
        (view(result=at(3, 1)), at(2, 5), Found),
        (view(result=at(2, 4)), at(2, 5), Unreachable),
        (view(result=VRG), at(1, 1), Unreachable),
        (view("False", "GetResourceFailed", NOT_FOUND), at(1, 1), Unreachable),
    ],
)
def test_view_that_is_older_than_the_manifest_work_is_no_answer(seen: Object, wanted: Object, kind: type) -> None:
    assert isinstance(answer(seen, work_of("west", wanted, REF)), kind)


def test_view_names_its_object() -> None:
    assert viewed(view_of("west", REF)) == REF
    node = ObjectRef("v1", "Node", "", "n1")
    assert viewed(view_of("west", node)) == node
    assert view_of("west", REF)["metadata"] == {"name": "shop-apps-vrg-mcv", "namespace": "west"}


def test_manifest_work_has_the_object_and_leaves_its_namespace() -> None:
    work = work_of("west", VRG, REF)
    assert work["metadata"] == {"name": "shop-apps-vrg-mw", "namespace": "west"}
    assert manifest_of(work, REF) == VRG
    assert manifest_of(work, ObjectRef(REF.api_version, REF.kind, "apps", "other")) is None
    rules = work["spec"]["deleteOption"]["selectivelyOrphans"]["orphaningRules"]
    assert rules == [{"group": "", "resource": "namespaces", "name": "apps"}]


@pytest.mark.parametrize(("status", "kind"), [("True", type(None)), ("False", Unreachable), ("Unknown", Unreachable), (None, Unreachable)])
def test_views_of_a_cluster_that_is_not_available_do_not_count(status: str | None, kind: type) -> None:
    conditions = [
        {"type": "ManagedClusterConditionAvailable", "status": status, "message": "Registration agent stopped updating its lease."}
    ]
    assert isinstance(unavailable({"status": {"conditions": conditions if status else []}}, "west"), kind)


def test_cluster_that_was_never_imported_is_no_access() -> None:
    assert isinstance(unavailable(None, "west"), Unauthorized)
