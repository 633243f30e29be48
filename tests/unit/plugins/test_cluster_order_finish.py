"""Which failures of a task are retried."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.action.cluster_order_finish import _failure


@pytest.mark.parametrize(
    ("step", "reason", "retried"),
    [
        ("provision", None, True),
        ("provision", "Invalid", False),
        ("provision", "NotSupported", False),
        ("provision", "SiteMistake", True),
        ("delete", "Invalid", True),
    ],
)
def test_a_failure_is_retried_unless_only_the_order_can_be_corrected(step: str, reason: str | None, retried: bool) -> None:
    assert _failure(step, "Apply", "it broke", reason).retryable is retried
