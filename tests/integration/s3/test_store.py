"""The conditional object store on a real S3 server, directly and through a proxy that injects faults."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import store as s3_store
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, StoredObject, connect
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import format_table, full_check, require_passed

from ..support.s3_proxy import Fault, Proxy

Options = dict[str, Any]
WORKLOAD = WorkloadRef("orders", "demo")


def body() -> bytes:
    return secrets.token_hex(8).encode()


@pytest.fixture
def store(bucket: Options) -> ObjectStore:
    return connect(bucket)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds requests back in the proxy until it is set, at the latest at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_objects_are_written_only_under_their_condition(store: ObjectStore) -> None:
    first, second, third = body(), body(), body()
    assert store.get("a/b") is None
    created = store.create("a/b", first)
    with pytest.raises(s3_errors.PreconditionFailed):
        store.create("a/b", second)
    replaced = store.replace("a/b", second, created)
    with pytest.raises(s3_errors.PreconditionFailed):
        store.replace("a/b", third, created)
    with pytest.raises(s3_errors.NoSuchKey):
        store.replace("a/c", third, created)
    assert store.get("a/b") == replaced
    assert replaced.body == second
    store.create("a/z", body())
    assert store.keys("a/") == ["a/b", "a/z"]
    store.delete("a/b")
    store.delete("a/b")
    assert store.keys("a/") == ["a/z"]


def test_unchanged_object_is_not_sent_again(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    store = connect(options)
    known = store.create("key", body())
    assert store.get("key", known) is known
    assert proxy.requests[-1][2] == 304
    changed = store.replace("key", body(), known)
    assert store.get("key", known) == changed


def test_list_of_several_pages_is_read_to_its_end(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert s3_store.LIST_PAGE <= 1000
    monkeypatch.setattr(s3_store, "LIST_PAGE", 10)
    names = [f"many/{number:04d}" for number in range(25)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda name: store.create(name, b"x"), names))
    assert store.keys("many/") == names


def test_errors_name_the_cause(bucket: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def error(**changes: str | None) -> s3_errors.S3Error:
        with pytest.raises(s3_errors.S3Error) as raised:
            connect(bucket | changes).create("key", body())
        return raised.value

    missing = error(bucket="absent")
    assert isinstance(missing, s3_errors.NoSuchBucket)
    assert "absent" in str(missing)
    assert "Create it" in str(missing)
    assert isinstance(error(secret_key=bucket["access_key"]), s3_errors.AccessDenied)
    assert isinstance(error(access_key="unknown"), s3_errors.AccessDenied)
    # The store reads back a write without an answer, and gets no answer again.
    assert isinstance(error(endpoint_url="http://127.0.0.1:9"), s3_errors.Unconfirmed)
    with pytest.raises(s3_errors.Unreachable, match="Check the address"):
        connect(bucket | {"endpoint_url": "http://127.0.0.1:9"}).get("key")
    with pytest.raises(s3_errors.BadOptions, match="no-such-profile"):
        connect(bucket | {"profile": "no-such-profile"})
    with pytest.raises(s3_errors.BadOptions, match="nonsense"):
        connect(bucket | {"endpoint_url": "nonsense"})
    with pytest.raises(s3_errors.BadOptions, match="aws:kms"):
        connect(bucket | {"encryption_kms_key_id": "key"})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert "credentials" in str(error(access_key=None, secret_key=None))


def test_aws_settings_are_used_for_options_that_are_not_set(bucket: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket["secret_key"])
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket["endpoint_url"])
    monkeypatch.setenv("AWS_REGION", bucket["region"])
    store = connect({"bucket": bucket["bucket"]})
    assert store.get("key") is None


WRITTEN: dict[str, Options] = {
    "answer lost": {},
    "500 after the write": {"status": 500},
    "503 after the write": {"status": 503},
    "409 after the write": {"status": 409},
    "412 after the write, as when a proxy sends it twice": {"status": 412},
}
NOT_WRITTEN: dict[str, tuple[Options, type[Exception]]] = {
    "request lost": ({}, s3_errors.Unreachable),
    "500": ({"status": 500}, s3_errors.ServerError),
    "503": ({"status": 503}, s3_errors.ServerError),
    "409": ({"status": 409}, s3_errors.PreconditionFailed),
    "412": ({"status": 412}, s3_errors.PreconditionFailed),
}


def test_write_that_succeeded_despite_its_answer_is_recognised(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    store = connect(options)
    for name, answer in WRITTEN.items():
        known: StoredObject | None = None
        for _write in ("create", "replace"):
            fault = Fault("PUT", **answer)
            proxy.faults = [fault]
            before = proxy.count("PUT")
            written = known = store.replace(name, body(), known) if known else store.create(name, body())
            assert fault.times == 0
            assert store.get(name) == written
            # The SDK sends no request twice: the proxy counts its own answer and that of the server.
            assert proxy.count("PUT") - before == (2 if fault.status else 1), name


def test_write_that_failed_is_sent_once_and_raises(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    store = connect(options)
    for name, (answer, expected) in NOT_WRITTEN.items():
        fault = Fault("PUT", forwarded=False, **answer)
        proxy.faults = [fault]
        before = proxy.count("PUT")
        with pytest.raises(expected):
            store.create(name, body())
        assert proxy.count("PUT") - before <= 1
        assert fault.times == 0
        assert store.get(name) is None, name


def test_reads_are_retried(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    store = connect(options)
    written = store.create("key", body())
    for fault in (Fault("GET"), Fault("GET", status=500)):
        proxy.faults = [fault]
        assert store.get("key") == written
        assert fault.times == 0


def test_write_with_an_unknown_outcome_is_unconfirmed(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.faults = [Fault("PUT"), Fault("GET", times=2)]
    with pytest.raises(s3_errors.Unconfirmed):
        connect(options).create("key", body())


def test_request_that_hangs_times_out(faulty: tuple[Proxy, Options], gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    assert s3_store.CONNECT_SECONDS + s3_store.READ_SECONDS <= 5
    monkeypatch.setattr(s3_store, "READ_SECONDS", 0.3)
    proxy, options = faulty
    proxy.faults = [Fault("GET", times=s3_store.READ_ATTEMPTS, gate=gate)]
    with pytest.raises(s3_errors.Unreachable):
        connect(options).get("key")
    assert not gate.is_set()


def test_lock_that_arrives_late_makes_no_leader(
    faulty: tuple[Proxy, Options], bucket: Options, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client gives up before the request reaches the store. The lock then belongs to a process that does not lead."""
    other = Lease(connect(bucket), WORKLOAD, "west", "west-1", 30)
    monkeypatch.setattr(s3_store, "READ_SECONDS", 1.0)
    proxy, options = faulty
    lease = Lease(connect(options), WORKLOAD, "east", "east-1", 30)
    proxy.faults = [Fault("PUT", "/lock", gate=gate)]
    with pytest.raises((s3_errors.Unreachable, s3_errors.Unconfirmed)):
        lease.try_acquire()
    assert not lease.acting()
    gate.set()
    late = until(other.observe, "the late lock is stored")
    assert (late.instance, late.epoch) == ("east-1", 1)
    assert not other.try_acquire()

    def acquire() -> bool:
        with suppress(s3_errors.Unreachable, s3_errors.Unconfirmed):  # on a machine that stalls
            return lease.try_acquire()
        return False

    until(acquire, "its writer acquires the lease again, at once")
    assert lease.epoch > late.epoch


def test_check_passes_on_a_store_that_honours_conditions(store: ObjectStore) -> None:
    results = full_check(store)
    assert all(result.passed for result in results), format_table(results)
    require_passed(results, "the store")
    assert store.keys("") == []


def test_check_fails_on_a_store_that_ignores_conditions(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.drops_conditions = True
    results = full_check(connect(options))
    failed = {result.case for result in results if not result.passed}
    assert failed >= {"create an existing object", "replace a changed object", "8 concurrent creates", "8 concurrent replaces"}
    with pytest.raises(s3_errors.ConditionalWritesUnsupported) as refused:
        require_passed(results, "bucket x")
    assert "does not honour conditional writes" in str(refused.value)
    assert "create an existing object: written instead of refused" in str(refused.value)
    assert "proxy" in str(refused.value)
    assert "FAILED" in format_table(results)
