"""`make demo-dr` as a newcomer runs it: a workload survives its cluster, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import working_in

DEMO = [sys.executable, "-m", "ansible_collections.openfleet.clusters.extensions.dev.demo_dr"]


def test_the_demo_loses_a_cluster_and_brings_its_workload_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENFLEET_SANDBOX", str(tmp_path / "state"))
    result = subprocess.run(DEMO, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    stages = [
        "Clusters east and west, an S3 server, replication",
        "dr_placement for west",
        "protect by one command on east",
        "east killed with -9",
        "led by west under epoch 2",
        "failover by one command on west",
        " FailedOver  ",
        "Data on west: order 1, order 2; order 3 is lost",
        "east started again",
        "Data on east: order 1, order 2, order 4;",
        "relocate by one command on west",
        "Data on east: order 1, order 2, order 4, order 5; nothing is lost",
        "Relocated ",
        "took  step",
        "Deploy to east: Create",
        "east is killed with -9",
        "west leads under epoch 2: the lease of east has ended",
        "Failover to west: Promote",
        "east is back",
        "Relocate to east: FinalSync",
        "Rulebooks ended",
        "Clusters ended",
        "What was built: the clusters east and west",
        "Try next",
    ]
    positions = [result.stdout.index(line) for line in stages]
    assert positions == sorted(positions)
    assert result.stdout.endswith("The walk-through explains each step: docs/dr_walkthrough.md\n")
    assert not list(tmp_path.iterdir()) and not working_in(tmp_path)
