"""Records of deleted clusters on a real API server and in a real bucket: exported once, by day, and deleted after that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, RECORD
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.record_archive import RecordArchive, Retention, delete_surplus, usage
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.fleet import TEMPLATE, Fleet, fleet_of

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture
def options(quick_sandbox: Sandbox, namespace: str) -> dict[str, Any]:
    """A new bucket, as the options of the S3 modules."""
    quick_sandbox.up(s3=True)
    s3 = quick_sandbox.s3()
    secrets = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key}
    boto3.client("s3", endpoint_url=s3.endpoint, region_name=s3.region, **secrets).create_bucket(Bucket=namespace)
    known = {"bucket": namespace, "endpoint_url": s3.endpoint, "region": s3.region}
    return known | {"access_key": s3.access_key, "secret_key": s3.secret_key}


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(hub, namespace) as made:
        yield made


def add_record(fleet: Fleet, uid: str, deleted: str, hours: float) -> None:
    spec = {"name": uid, "uid": uid, "template": TEMPLATE, "created": "2026-01-01T00:00:00Z", "deleted": deleted, "reason": "Deleted"}
    metadata = {"name": uid, "namespace": fleet.namespace}
    item = {"apiVersion": API_VERSION, "kind": RECORD, "metadata": metadata, "spec": spec | {"nodeHours": {"fc430": hours}}}
    fleet.home.create(item, strict=True)


def test_records_are_exported_once_by_day_and_deleted_after_that(fleet: Fleet, options: dict[str, Any]) -> None:
    archive = RecordArchive(fleet.home, connect(options), "fleet/records/")
    add_record(fleet, "first", "2026-01-02T01:00:00Z", 1)
    add_record(fleet, "second", "2026-01-03T01:00:00Z", 2)
    assert delete_surplus(fleet.home, Retention(max_number=0), NOW, only_exported=True) == 0  # none is exported
    assert archive.export(NOW) == 2
    add_record(fleet, "third", "2026-01-02T00:30:00Z", 4)
    assert (archive.export(NOW), archive.export(NOW)) == (1, 0)
    assert [line["uid"] for line in archive.read("2026-01-02")] == ["third", "first"]
    assert usage([*archive.read("2026-01-02"), *archive.read("2026-01-03")]) == {fleet.namespace: {"fc430": 7.0}}
    assert archive.read("2026-01-04") == []
    # A run that was killed between the bucket and the mark exports the record again, and the day has it once.
    fleet.home.patch(fleet.records()[0], {"status": {"exported": None}}, subresource="status", checked=False)
    assert archive.export(NOW) == 1
    assert len(archive.read("2026-01-02")) == 2
    assert delete_surplus(fleet.home, Retention(max_age=timedelta(days=28, hours=12)), NOW, only_exported=True) == 2
    assert [each["spec"]["uid"] for each in fleet.records()] == ["second"]
