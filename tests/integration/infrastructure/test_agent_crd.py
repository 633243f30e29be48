"""The infrastructure operator's own CRD of Agents has every field that claims write, and that the sandbox's stand-in has."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import AGENTS_CRD, load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import agent_hosts
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import holds

from ..support.agents import CLASS
from ..support.in_process import act

pytestmark = pytest.mark.agent_crds
# The Agents of the hub itself are of the stand-in, for the other tests.
GROUP = "upstream-agents.test"
HEALTHY = {"Connected": "True", "Validated": "True", "Bound": "False"}


@pytest.fixture
def api_version(quick_hub: Access, agent_crd: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The CRD in an API group of its own, in which claims look for Agents."""
    crd = copy.deepcopy(agent_crd)
    crd["spec"]["group"], crd["metadata"] = GROUP, {"name": f"agents.{GROUP}"}
    quick_hub.install_crds(crd)
    monkeypatch.setattr(agent_hosts, "API_VERSION", f"{GROUP}/v1beta1")
    yield f"{GROUP}/v1beta1"
    quick_hub.kubectl("delete", "crd", f"agents.{GROUP}")


@pytest.fixture
def namespace(quick_hub: Access) -> Iterator[str]:
    with fresh_namespace(quick_hub) as name:
        yield name


def test_every_field_that_a_claim_writes_is_stored(
    quick_hub: Access, namespace: str, api_version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = quick_hub.kube
    metadata = {"name": "host", "namespace": namespace, "labels": {CLASS: "fc430"}}
    agent = kube.create({"apiVersion": api_version, "kind": "Agent", "metadata": metadata, "spec": {"approved": False, "role": ""}})
    conditions = [
        {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, status in HEALTHY.items()
    ]
    kube.patch(agent, {"status": {"conditions": conditions, "debugInfo": {"state": "known-unbound"}}}, subresource="status")
    dropped: list[Object] = []
    written: list[Object] = []
    patch = Kube.patch

    def checked(self: Kube, item: Object, changes: Any, **options: Any) -> Object:
        """The server drops a field that its schema lacks."""
        answer = patch(self, item, changes, **options)
        if answer["kind"] == "Agent":
            written.append(changes)
            dropped.extend([] if holds(answer["spec"], changes["spec"], merged=True) else [changes])
        return answer

    monkeypatch.setattr(Kube, "patch", checked)
    options = {"name": "one", "namespace": namespace, "provider": "hypershift", "kubeconfig": str(quick_hub.kubeconfig)}
    claim = {**options, "agent_namespace": namespace, "node_requests": [{"resourceClass": "fc430", "numberOfNodes": 1}]}
    assert act("cluster_hosts", claim)["hosts"] == {"fc430": ["host"]}
    assert act("cluster_hosts", claim | {"state": "absent"})["released"] == ["host"]
    assert {name for changes in written for name in changes} == {"metadata", "spec"} and dropped == []

    kube.patch(kube.get(api_version, "Agent", "host", namespace), {"spec": {"noSuchField": "x"}})
    assert dropped == [{"spec": {"noSuchField": "x"}}], "so a field that it lacks is noticed"


def fields(schema: Object, path: str = "") -> dict[str, str]:
    """The type of every field in the schema of a CRD."""
    found = {path: str(schema["type"])}
    for name, each in (schema.get("properties") or {}).items():
        found |= fields(each, f"{path}.{name}")
    return found | (fields(schema["items"], f"{path}[]") if "items" in schema else {})


def test_the_stand_in_has_no_other_field(agent_crd: dict[str, Any]) -> None:
    theirs, ours = (fields(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]) for crd in (agent_crd, load_crd(AGENTS_CRD)))
    assert ours.items() <= theirs.items()
