"""The sandbox's own CRDs of Ramen's kinds: the same fields, rules and columns as Ramen's, only fewer."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import upstream
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import crds_in
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.drclusters import drcluster_status
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.setup import OWN_CRDS, UPSTREAM_CRDS
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.status import DONE, Observed, ProtectedClaim, group_status
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.replication import RAMEN, Protected

KINDS = ("DRCluster", "DRPlacementControl", "DRPolicy", "VolumeReplicationGroup")
# What the pinned version of Ramen's Go module does not have yet.
NEWER = {"dryRun", "grouping", "offloaded", "pvcgroups", "rdInfo", "rsSpec", "volSyncSpec", "volumeMode"}
COMPARED = ("type", "format", "enum", "nullable", "x-kubernetes-map-type", "default")
CLAIM = {
    "metadata": {"name": "data", "namespace": "shop", "labels": {"app": "shop"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "replicated"},
}


@functools.cache
def definitions(ours: bool) -> dict[str, dict[str, Any]]:
    """The only version of each kind."""
    given = os.environ.get(UPSTREAM_CRDS)
    theirs = crds_in(Path(given) / "ramen") if given else upstream.ramen_crds()
    found = crds_in(OWN_CRDS) if ours else theirs
    return {crd["spec"]["names"]["kind"]: crd["spec"] for crd in found if crd["spec"]["names"]["kind"] in KINDS}


def schema(kind: str, ours: bool) -> dict[str, Any]:
    return dict(definitions(ours)[kind]["versions"][0]["schema"]["openAPIV3Schema"])


def differences(own: dict[str, Any], theirs: dict[str, Any], path: str) -> Iterator[str]:
    """Where a field of ours is not one of theirs, or is one of another type or with other rules."""
    given = bool(os.environ.get(UPSTREAM_CRDS))
    for name in COMPARED:
        if own.get(name) != theirs.get(name):
            yield f"{path}: {name} is {own.get(name)}, not {theirs.get(name)}"
    if set(own.get("required", [])) - set(theirs.get("required", [])) or (given and own.get("required") != theirs.get("required")):
        yield f"{path}: required is {own.get('required')}, not {theirs.get('required')}"
    rules = [[rule["rule"] for rule in entry.get("x-kubernetes-validations", [])] for entry in (own, theirs)]
    if rules[0] != rules[1]:
        yield f"{path}: the rules are {rules[0]}, not {rules[1]}"
    for name, field in own.get("properties", {}).items():
        if name in theirs["properties"]:
            yield from differences(field, theirs["properties"][name], f"{path}.{name}")
        elif given or name not in NEWER:
            yield f"{path}.{name}: no such field"
    for name in ("items", "additionalProperties"):
        if isinstance(own.get(name), dict):
            yield from differences(own[name], theirs[name], f"{path}[]")


@pytest.mark.ramen_crds
@pytest.mark.parametrize("kind", KINDS)
def test_own_definition_has_only_fields_of_ramen_with_its_types_rules_and_columns(kind: str) -> None:
    assert list(differences(schema(kind, ours=True), schema(kind, ours=False), kind)) == []
    own, theirs = definitions(ours=True)[kind], definitions(ours=False)[kind]
    assert (own["scope"], own["names"]) == (theirs["scope"], theirs["names"])
    columns = [crd["versions"][0].get("additionalPrinterColumns") for crd in (own, theirs)]
    assert columns[0] == columns[1]


def unknown_fields(value: Any, definition: dict[str, Any], path: str = "") -> Iterator[str]:
    """The fields that an API server with this definition would drop."""
    if isinstance(value, list):
        for entry in value:
            yield from unknown_fields(entry, definition["items"], f"{path}[]")
    elif isinstance(value, dict) and "properties" in definition:
        for name, entry in value.items():
            if name not in definition["properties"]:
                yield f"{path}.{name}"
            else:
                yield from unknown_fields(entry, definition["properties"][name], f"{path}.{name}")


def samples() -> list[dict[str, Any]]:
    """Objects with every field that the stand-in writes."""
    claims = (ProtectedClaim(CLAIM, maintenance=True),)
    as_primary = Observed(claims=claims, restored=DONE, protected=True, uploaded=DONE, prepared=True, final_sync=True)
    spec = {"pvcSelector": {"matchLabels": {"app": "shop"}}, "s3Profiles": ["s3-east"], "async": {"schedulingInterval": "5m"}}
    flags = {"prepareForFinalSync": True, "runFinalSync": True, "kubeObjectProtection": {"captureInterval": "5m"}, "action": "Relocate"}
    now, metadata = "2026-01-01T00:00:00Z", {"name": "shop", "namespace": "shop", "generation": 1}
    found = []
    for state, observed, more in (("primary", as_primary, flags), ("secondary", Observed(claims=claims, has_data=True), {})):
        vrg = {"kind": "VolumeReplicationGroup", "metadata": metadata, "spec": spec | more | {"replicationState": state}}
        found.append(vrg | {"status": group_status(vrg, observed, now)})
    cluster = {"kind": "DRCluster", "metadata": {"name": "east", "generation": 1}, "spec": {"s3ProfileName": "s3-east", "region": "north"}}
    return [*found, cluster | {"status": drcluster_status(cluster, True, True, now)}]


@pytest.mark.parametrize("ours", [pytest.param(True, id="ours"), pytest.param(False, id="ramens", marks=pytest.mark.ramen_crds)])
@pytest.mark.parametrize("sample", samples(), ids=lambda sample: f"{sample['kind']}-{sample['spec'].get('replicationState', '')}")
def test_what_the_stand_in_writes_is_valid_for_both(sample: dict[str, Any], ours: bool) -> None:
    definition = schema(sample["kind"], ours)
    jsonschema.validate(sample, definition)
    unknown = {path for path in unknown_fields(sample, definition) if path.rpartition(".")[2] not in NEWER}
    assert {path for path in unknown if not path.startswith(".metadata.")} == set()


def test_users_of_ramen_find_their_columns_and_its_rules(application: Protected, dr_sites: dict[str, Access]) -> None:
    east = dr_sites["east"]
    references = {"placementRef": {"name": "app", "kind": "Placement"}, "drPolicyRef": {"name": "regional"}}
    spec = {**references, "pvcSelector": {}, "preferredCluster": "east", "failoverCluster": "west", "action": "Failover"}
    metadata = {"name": "app", "namespace": application.namespace}
    control = east.kube.create({"apiVersion": RAMEN, "kind": "DRPlacementControl", "metadata": metadata, "spec": spec})
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", "reason": "Success"}
    conditions = [{"type": "Available", "status": "True", **times}, {"type": "PeerReady", "status": "False", **times}]
    status = {"phase": "FailedOver", "progression": "Completed", "actionStartTime": "2026-01-01T00:00:00Z", "actionDuration": "9s"}
    east.kube.patch(control, {"status": status | {"conditions": conditions}}, subresource="status")
    shown = east.kubectl("get", "drpc", "-o", "wide", "-n", application.namespace).stdout.splitlines()
    columns = "NAME AGE PREFERREDCLUSTER FAILOVERCLUSTER DESIREDSTATE CURRENTSTATE PROGRESSION START TIME DURATION PEER READY"
    assert shown[0].split() == columns.split()
    values = "east west Failover FailedOver Completed 2026-01-01T00:00:00Z 9s False"
    assert shown[1].split()[2:] == values.split()

    for field in ("drPolicyRef", "placementRef", "pvcSelector"):
        change = {"matchLabels": {"app": "other"}} if field == "pvcSelector" else {"name": "other"}
        with pytest.raises(KubeError, match=f"{field} is immutable"):
            east.kube.patch(control, {"spec": {field: change}}, checked=False)
    policy = {
        "apiVersion": RAMEN,
        "kind": "DRPolicy",
        "metadata": {"name": "alone"},
        "spec": {"drClusters": ["east"], "schedulingInterval": "5m"},
    }
    with pytest.raises(KubeError, match="requires a list of 2 clusters"):
        east.kube.create(policy)
