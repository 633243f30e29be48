"""The ledger: what it keeps, what it never holds, and two runs at the same time."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.errors import OtherRun, PlatformError
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.ledger import KEY, Entry, Ledger, LedgerStore

from .platform_site import Hub

REFERENCE = ("openfleet-system", "platform")


def store(hub: Hub) -> LedgerStore:
    return LedgerStore(hub, *REFERENCE)  # type: ignore[arg-type]


def test_ledger_is_read_as_it_was_written() -> None:
    hub, ledger = Hub(), Ledger()
    ledger.put("controller_templates", 5, Entry("a", "fleet", "2025-01-01", secrets={"x": "y"}))
    ledger.pending.add(("controller_labels", "fleet", "b"))
    ledger.grants["7/teams/3"] = "team ops: admin on project p"
    writer = store(hub)
    writer.read()
    writer.begin(ledger)
    assert store(hub).read() == ledger


def test_secret_is_known_by_its_value_its_path_and_its_object() -> None:
    ledger = Ledger()
    ledger.put("controller_credentials", 5, Entry("a", secrets={"inputs.token": ledger.digest("inputs.token", "s3cr3t")}))
    assert ledger.knows("controller_credentials", 5, "inputs.token", "s3cr3t")
    for kind, identity, path, value in [
        ("controller_credentials", 5, "inputs.token", "other"),
        ("controller_credentials", 5, "inputs.password", "s3cr3t"),
        ("controller_credentials", 6, "inputs.token", "s3cr3t"),
        ("eda_credentials", 5, "inputs.token", "s3cr3t"),
    ]:
        assert not ledger.knows(kind, identity, path, value)
    assert "s3cr3t" not in ledger.to_text()
    assert Ledger().digest("inputs.token", "s3cr3t") != ledger.digest("inputs.token", "s3cr3t")


def test_second_of_two_runs_fails_before_it_writes() -> None:
    hub = Hub()
    first, second = store(hub), store(hub)
    mine, other = first.read(), second.read()
    first.begin(mine)
    with pytest.raises(OtherRun, match="run this again when that one has ended"):
        second.begin(other)


def test_what_another_run_recorded_meanwhile_stays() -> None:
    hub = Hub()
    first, second = store(hub), store(hub)
    first.begin(first.read())
    second.update(lambda ledger: ledger.put("controller_labels", 1, Entry("theirs")))
    first.update(lambda ledger: ledger.put("controller_labels", 2, Entry("ours")))
    assert {entry.name for entry in store(hub).read().entries["controller_labels"].values()} == {"theirs", "ours"}


@pytest.mark.parametrize("data", [None, {}, {KEY: "bm90IGpzb24="}, {KEY: "e30="}])
def test_secret_that_is_no_ledger_is_refused(data: dict[str, str] | None) -> None:
    hub = Hub({REFERENCE: {"metadata": {"name": REFERENCE[1], "namespace": REFERENCE[0]}, "data": data}})
    with pytest.raises(PlatformError, match="is not a ledger: delete it"):
        store(hub).read()
