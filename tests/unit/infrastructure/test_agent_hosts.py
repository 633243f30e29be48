"""Why a claimed Agent does not work, by what the infrastructure operator reports."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.agent_hosts import agent_namespace, problem, record_name


@pytest.mark.parametrize(
    ("metadata", "conditions", "said"),
    [
        ({}, [], ""),  # not reported yet
        ({}, [("Connected", "True", "AgentIsConnected"), ("Installed", "True", "InstallationCompleted")], ""),
        ({}, [("Connected", "Unknown", "NotAvailable")], ""),
        (
            {},
            [("Connected", "True", ""), ("Installed", "False", "InstallationInProgress"), ("Validated", "False", "ValidationsFailing")],
            "",
        ),
        ({}, [("Connected", "False", "AgentIsDisconnected")], "is not connected"),
        ({}, [("Connected", "True", ""), ("Installed", "False", "InstallationFailed")], "could not be installed"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, [("Connected", "False", "")], "is being deleted"),
    ],
)
def test_a_host_that_does_not_work_says_why(metadata: dict[str, Any], conditions: list[tuple[str, str, str]], said: str) -> None:
    reported = [{"type": kind, "status": status, "reason": reason} for kind, status, reason in conditions]
    assert problem({"metadata": metadata, "spec": {}, "status": {"conditions": reported}}) == said


def test_only_a_record_of_agents_names_their_namespace() -> None:
    assert agent_namespace(record_name("hosts")) == "hosts"
    assert agent_namespace("listed-lab") == ""
