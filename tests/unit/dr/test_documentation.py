"""The tables of the guide name every stage and every gate."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.gates import GATES
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.procedures import PROCEDURES
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "dr_state_machine.md").read_text()
REPORTED = {"HomeChosen", "RequestInProgress", "TestInProgress", "StateKnown"}  # by subjects, not by gates of stages


def test_the_table_of_procedures_is_that_of_the_code() -> None:
    stages = [(kind, stage) for kind, procedure in PROCEDURES.items() for stage in procedure]
    rows = [
        f"| {kind} | {stage.name} | {stage.phase or ''} | {stage.progression} | {', '.join(dict.fromkeys(stage.before + stage.after))} |"
        for kind, stage in stages
    ]
    assert [row for row in rows if row not in GUIDE] == []


def test_every_gate_is_described() -> None:
    assert step
    others = set(re.findall(r"`(\w+)`", GUIDE.split("## Other gates")[1].split("## An empty bucket")[0]))
    in_stages = {name for procedure in PROCEDURES.values() for stage in procedure for name in stage.before + stage.after}
    assert set(GATES) | REPORTED == in_stages | (others - {"PeerReady"})
