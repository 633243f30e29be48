"""Route 53 against a stand-in: botocore's Stubber checks each request against Amazon's own description of the API. No server is real."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_records import (
    DnsError,
    DnsRefused,
    DnsUnreachable,
    RecordsChanged,
    RecordSet,
    RecordUpdate,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_route53 import Route53Zone, route53_client
from botocore.stub import Stubber

ZONE = "Z0000000EXAMPLE"
API = RecordSet("api.demo.example.com", "A", ("192.0.2.1",))
APPS = RecordSet("*.apps.demo.example.com", "A", ("192.0.2.2",))
CLAIM = RecordSet("_openfleet-clusters.demo.example.com", "TXT", ("openfleet.clusters owner=uid token=3 names=api",))
NEXT = RecordSet(CLAIM.name, "TXT", ("openfleet.clusters owner=uid token=4 names=*.apps,api",))


@pytest.fixture
def stub() -> Iterator[tuple[Route53Zone, Stubber]]:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client("route53", region_name="us-east-1", **keys)
    with Stubber(client) as stubber:
        yield Route53Zone(client, ZONE), stubber
        stubber.assert_no_pending_responses()


def change(action: str, name: str, kind: str, *values: str) -> dict[str, Any]:
    records = [{"Value": value} for value in values]
    return {"Action": action, "ResourceRecordSet": {"Name": name, "Type": kind, "TTL": 300, "ResourceRecords": records}}


def test_the_records_of_a_name_are_read_and_others_of_the_list_are_not(stub: tuple[Route53Zone, Stubber]) -> None:
    zone, stubber = stub
    found = [
        {"Name": "\\052.apps.demo.example.com.", "Type": "A", "TTL": 300, "ResourceRecords": [{"Value": "192.0.2.2"}]},
        {"Name": "\\052.apps.demo.example.com.", "Type": "MX", "TTL": 300, "ResourceRecords": [{"Value": "1 mx.example.com"}]},
        {"Name": "api.demo.example.com.", "Type": "A", "TTL": 300, "ResourceRecords": [{"Value": "192.0.2.1"}]},
    ]
    answer = {"ResourceRecordSets": found, "IsTruncated": False, "MaxItems": "10"}
    stubber.add_response("list_resource_record_sets", answer, {"HostedZoneId": ZONE, "StartRecordName": APPS.name, "MaxItems": "10"})
    assert zone.read([APPS.name], ["A", "AAAA", "CNAME"]) == [APPS]


def test_an_update_is_one_batch_that_fails_where_the_claim_is_another_or_a_name_exists(stub: tuple[Route53Zone, Stubber]) -> None:
    zone, stubber = stub
    changes = [
        change("DELETE", CLAIM.name, "TXT", f'"{CLAIM.values[0]}"'),
        change("CREATE", NEXT.name, "TXT", f'"{NEXT.values[0]}"'),
        change("CREATE", APPS.name, "A", "192.0.2.2"),
        change("UPSERT", API.name, "A", "192.0.2.1"),
    ]
    status = {"ChangeInfo": {"Id": "1", "Status": "PENDING", "SubmittedAt": "2026-01-01T00:00:00Z"}}
    stubber.add_response("change_resource_record_sets", status, {"HostedZoneId": ZONE, "ChangeBatch": {"Changes": changes}})
    zone.write(RecordUpdate(CLAIM, NEXT, new=(APPS.name,), written=(API, APPS)))


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("InvalidChangeBatch", RecordsChanged, "changed at the same time"),
        ("NoSuchHostedZone", DnsRefused, "check the zone's id"),
        ("AccessDenied", DnsRefused, "permissions of the account"),
        ("PriorRequestNotComplete", DnsError, "try again later"),
    ],
)
def test_a_refusal_has_its_reason(stub: tuple[Route53Zone, Stubber], code: str, error: type[Exception], message: str) -> None:
    zone, stubber = stub
    stubber.add_client_error("change_resource_record_sets", code)
    with pytest.raises(error, match=message) as refused:
        zone.write(RecordUpdate(CLAIM, None, deleted=(API,)))
    assert getattr(refused.value, "retryable", False)


def test_an_address_without_a_server_is_reported() -> None:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    with pytest.raises(DnsUnreachable, match="Route 53, hosted zone Z0000000EXAMPLE does not answer"):
        Route53Zone(route53_client("http://127.0.0.1:1", keys), ZONE).read([API.name], ["A"])
