"""The DNS records of a cluster: what is wanted, who owns them, and the update from what is present."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_records import (
    DnsNameTaken,
    RecordSet,
    plan_update,
    wanted_records,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_resolution import _address
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockLost

DOMAIN = "demo.example.com"
API, APPS = (RecordSet(f"{name}.{DOMAIN}", "A", (f"192.0.2.{number}",)) for name, number in (("api", 1), ("*.apps", 2)))
MOVED = RecordSet(API.name, "A", ("192.0.2.9",))


def claim(owner: str = "uid", token: int = 3, names: str = "*.apps,api") -> RecordSet:
    return RecordSet(f"_openfleet-clusters.{DOMAIN}", "TXT", (f"openfleet.clusters owner={owner} token={token} names={names}",))


def planned(wanted: list[RecordSet], claimed: list[RecordSet], present: list[RecordSet], token: int = 7, former: Sequence[str] = ()) -> Any:
    return plan_update(DOMAIN, "uid", token, wanted, claimed, present, former)


def test_targets_are_addresses_of_both_families_or_one_name() -> None:
    records = {"api": ["192.0.2.1", "2001:DB8::1", "192.0.2.1"], "*.apps": ["lb.example.net."]}
    assert wanted_records(DOMAIN, "example.com", records, 60) == [
        RecordSet("api.demo.example.com", "A", ("192.0.2.1",), 60),
        RecordSet("api.demo.example.com", "AAAA", ("2001:db8::1",), 60),
        RecordSet("*.apps.demo.example.com", "CNAME", ("lb.example.net",), 60),
    ]


@pytest.mark.parametrize(
    ("domain", "records", "problem"),
    [
        (DOMAIN, {"api": []}, "records.api must be a list of addresses, or of one name"),
        (DOMAIN, {"api": ["a.example.net", "b.example.net"]}, "records.api must be a list of addresses, or of one name"),
        (DOMAIN, {"api": ["a.example.net", "192.0.2.1"]}, "records.api must be"),
        (DOMAIN, {"api": ["not a name"]}, "records.api must have addresses or a DNS name"),
        (DOMAIN, {"a b": ["192.0.2.1"]}, 'records must have names such as api or \\*.apps, not "a b"'),
        (DOMAIN, {"x.*.y": ["192.0.2.1"]}, "records must have names"),
        ("demo.example.org", {"api": ["192.0.2.1"]}, "is not in the zone"),
        ("demoexample.com", {"api": ["192.0.2.1"]}, "is not in the zone"),
        ("De mo.example.com", {"api": ["192.0.2.1"]}, "domain must be a DNS name in lower-case letters"),
        (DOMAIN, {f"n{number}": ["192.0.2.1"] for number in range(11)}, "11 names, and 10 is the most"),
    ],
)
def test_what_cannot_be_a_record_is_refused(domain: str, records: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        wanted_records(domain, "example.com", records, 300)


def test_the_first_update_claims_the_domain_and_needs_free_names() -> None:
    update = planned([API, APPS], [], [])
    assert update.claimed is None and update.claim == claim(token=7)
    assert update.new == (APPS.name, API.name) and update.written == (API, APPS) and update.deleted == ()


def test_nothing_is_written_where_nothing_differs_whichever_run_wrote_it() -> None:
    assert planned([API, APPS], [claim()], [API, APPS]) is None
    assert planned([], [], []) is None


def test_an_update_changes_what_differs_and_deletes_what_is_not_wanted_any_more() -> None:
    update = planned([MOVED], [claim()], [API, APPS])
    assert update.claimed == claim() and update.claim == claim(token=7, names="api")
    assert (update.new, update.deleted, update.replaced, update.written) == ((), (APPS,), (API,), (MOVED,))


def test_a_record_of_another_type_takes_the_place_of_the_first() -> None:
    name = RecordSet(API.name, "CNAME", ("lb.example.net",))
    update = planned([name], [claim(names="api")], [API])
    assert (update.deleted, update.written) == ((API,), (name,))


def test_all_records_of_the_cluster_are_deleted_with_their_claim() -> None:
    update = planned([], [claim()], [API, APPS])
    assert (update.claimed, update.claim, update.deleted, update.written) == (claim(), None, (API, APPS), ())


def test_a_deleted_record_is_written_again() -> None:
    assert planned([API, APPS], [claim()], [API]).written == (APPS,)


@pytest.mark.parametrize(
    ("claimed", "present", "message"),
    [
        ([claim(owner="other")], [API], "belong to another cluster"),
        ([], [API], "api.demo.example.com has DNS records that this collection did not make"),
        ([claim(names="*.apps")], [API, APPS], "api.demo.example.com has DNS records that this collection did not make"),
        ([RecordSet(f"_openfleet-clusters.{DOMAIN}", "TXT", ("hello",))], [], "was not made by this collection"),
    ],
)
def test_records_of_others_are_never_changed(claimed: list[RecordSet], present: list[RecordSet], message: str) -> None:
    with pytest.raises(DnsNameTaken, match=message):
        planned([API, APPS], claimed, present)


def test_the_records_of_a_former_owner_become_the_owners() -> None:
    former = claim(owner="former")
    update = planned([API, APPS], [former], [API, APPS], former=["older", "former"])
    assert (update.claimed, update.claim, update.deleted, update.written) == (former, claim(token=7), (), ())
    assert planned([], [former], [API, APPS], former=["former"]).deleted == (API, APPS)
    with pytest.raises(DnsNameTaken):
        planned([API, APPS], [claim(owner="other")], [API, APPS], former=["former"])


def test_a_deletion_leaves_what_others_made() -> None:
    assert planned([], [], [API]) is None
    with pytest.raises(DnsNameTaken):
        planned([], [claim(owner="other")], [API])


def test_a_run_does_not_change_the_records_of_a_later_run() -> None:
    with pytest.raises(LockLost, match="token is 8, that of this run 7"):
        planned([MOVED], [claim(token=8, names="api")], [API])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.53", ("192.0.2.53", 53)),
        ("192.0.2.53:5353", ("192.0.2.53", 5353)),
        ("[2001:db8::53]:5353", ("2001:db8::53", 5353)),
        ("[192.0.2.53]:5353", ("192.0.2.53", 5353)),
        ("2001:db8::53", ("2001:db8::53", 53)),
    ],
)
def test_a_resolver_is_an_address_with_or_without_a_port(text: str, address: tuple[str, int]) -> None:
    assert _address(text) == address


def test_a_resolver_that_is_no_address_is_refused() -> None:
    with pytest.raises(Invalid, match="resolvers must be addresses"):
        _address("ns.example.com")
