"""Health reports of clusters, on a store in memory and a clock that the test sets."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.health import ClusterHealth, reporting_clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors

from .conftest import Clock


def test_health_is_the_last_report_and_unknown_without_reports(documents: DocumentStore, clock: Clock) -> None:
    own, other = (ClusterHealth(documents.store, "east", clock) for _side in range(2))
    assert (other.observe().state, reporting_clusters(documents.store)) == ("unknown", [])
    own.report("healthy", interval=10)
    assert reporting_clusters(documents.store) == ["east"]
    assert other.observe().state == "healthy"
    clock.now += 30
    assert other.observe().state == "healthy"
    clock.now += 1
    assert other.observe().state == "unknown"
    assert "no report for 31 seconds" in other.observe().reason
    own.report("unreachable", "no answer", interval=10)
    assert (other.observe().state, other.observe().sequence) == ("unreachable", 2)
    # A source that was restarted goes on where it stopped.
    assert ClusterHealth(documents.store, "east", clock).report("healthy").sequence == 3
    with pytest.raises(s3_errors.BadOptions):
        ClusterHealth(documents.store, "East")
