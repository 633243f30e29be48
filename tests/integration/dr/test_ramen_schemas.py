"""What is read from Ramen's objects and written to them, against the schemas of Ramen's own CRDs."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import ramen_crds
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.conditions import merged
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.desired import FIELDS
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import DeployVRG
from ansible_collections.openfleet.clusters.tests.unit.dr import samples
from ansible_collections.openfleet.clusters.tests.unit.dr.ramen_objects import DRCLUSTER, DRPC, DRPOLICY
from ansible_collections.openfleet.clusters.tests.unit.dr.samples import DEAD, Object, acting, observed, secondary, settled, vrg

# Fields that Ramen's API has since the version whose types the sandbox uses.
NEWER = {"dryRun", "volSyncSpec"}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Object]:
    return {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in ramen_crds()}


def check(schema: Object, item: Object) -> None:
    """Types, enums and required fields; and no field that the API server would drop."""
    jsonschema.validate(item, schema)
    for part in ("spec", "status"):
        unknown = set(item.get(part, {})) - set(schema["properties"].get(part, {}).get("properties", {})) - NEWER
        assert not unknown, f"{part} has no {unknown}"


@pytest.mark.parametrize(("kind", "item"), [("DRPlacementControl", DRPC), ("DRPolicy", DRPOLICY), ("DRCluster", DRCLUSTER)])
def test_the_samples_are_objects_of_ramen(kind: str, item: Object, schemas: dict[str, Object]) -> None:
    check(schemas[kind], item)


@pytest.mark.parametrize("interval", ["5m", ""])
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_deployed_fits_the_schema(interval: str, dry_run: bool, schemas: dict[str, Object]) -> None:
    action = "TestFailover" if dry_run else "Failover"
    state = samples.in_progress(action, "Try" if dry_run else "Promote")
    wanted = samples.intent("Failover", "west", dry_run=dry_run, volsync={"disabled": True}, kube_objects={"captureInterval": "5m"})
    policy = samples.policy(interval)
    policy = replace(policy, members=tuple(replace(member, fenced=True) for member in policy.members))
    actions = acting(wanted, state, observed(vrg() if dry_run else DEAD, secondary()), policy)
    specs = [item.spec for item in actions if isinstance(item, DeployVRG)]
    assert specs
    for spec in specs:
        assert set(spec) <= set(FIELDS)
        check(schemas["VolumeReplicationGroup"], {"metadata": {}, "spec": spec})


def test_conditions_fit_the_schema_in_ramens_order(schemas: dict[str, Object]) -> None:
    result = step(samples.intent(group="global-1"), settled(), observed(vrg(), secondary()), samples.policy())
    status = {"conditions": merged([], result.conditions, 3, samples.START), "phase": result.phase, "progression": result.progression}
    check(schemas["DRPlacementControl"], DRPC | {"status": status})
    assert [item["type"] for item in status["conditions"]] == ["Available", "PeerReady", "Protected", "GlobalAction", "Waiting"]
    later = merged(status["conditions"], result.conditions, 4, samples.at(5))
    assert {item["lastTransitionTime"] for item in later} == {samples.stamp()}
