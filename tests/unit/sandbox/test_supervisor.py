"""The CRDs that the supervisor installs on a new hub. No process is started."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild, upstream
from ansible_collections.openfleet.clusters.extensions.sandbox.cluster import Cluster
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import AGENTS_CRD, COLLECTION_CRDS, crds_in, load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.supervisor import DesiredState, Supervisor

Definitions = list[dict[str, Any]]


def crd(name: str) -> dict[str, Any]:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the CRDs that hubs get in this test."""
    names: list[str] = []

    async def ignore(*_arguments: Any) -> None:
        pass

    async def install_crds(_cluster: Cluster, _file: str, definitions: Definitions) -> None:
        names.extend(definition["metadata"]["name"] for definition in definitions)

    monkeypatch.setattr(gobuild, "programs", lambda _program: {})
    monkeypatch.setattr(upstream, "hypershift_crds", lambda: [crd("of.the.module")])
    monkeypatch.setattr(Cluster, "start", ignore)
    monkeypatch.setattr(Cluster, "apply", ignore)
    monkeypatch.setattr(Cluster, "install_crds", install_crds)
    monkeypatch.setattr(Supervisor, "_start_standin", ignore)
    return names


@pytest.mark.parametrize("from_folder", [False, True])
def test_hub_gets_the_crds_of_the_collection_and_those_of_hypershift_or_of_a_folder(
    installed: list[str], tmp_path: Path, from_folder: bool
) -> None:
    folder = tmp_path / "crds"
    folder.mkdir()
    for name in ("first", "second"):
        (folder / f"{name}.yaml").write_text(json.dumps(crd(f"{name}.of.the.folder")), encoding="utf-8")
    desired = DesiredState(hypershift_crds=str(folder) if from_folder else "")
    asyncio.run(Supervisor(tmp_path / "state")._reconcile(desired))  # noqa: SLF001 - the rest of it needs a process
    collection = [definition["metadata"]["name"] for definition in crds_in(COLLECTION_CRDS)]
    assert {"clusterorders.cloudkit.openshift.io", "clusterregistries.ramendr.openshift.io"} <= set(collection)
    others = ["first.of.the.folder", "second.of.the.folder"] if from_folder else ["of.the.module"]
    assert installed == [*collection, *others, load_crd(AGENTS_CRD)["metadata"]["name"]]
