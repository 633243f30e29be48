"""The conditional object store on a real S3 server, and through a proxy that loses answers, delays, refuses and forges."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Place
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import store as s3_library
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import store_check as coordination_proof
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, Stored, connect
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import prove, require

from ..support.s3_proxy import Fault, Proxy

Options = dict[str, Any]
PLACE = Place("orders", "demo")


def body() -> bytes:
    return secrets.token_hex(8).encode()


@pytest.fixture
def store(bucket: Options) -> ObjectStore:
    return connect(bucket)


def test_objects_are_written_only_under_their_condition(store: ObjectStore) -> None:
    first, second, third = body(), body(), body()
    assert store.get("a/b") is None
    created = store.create("a/b", first)
    with pytest.raises(s3_errors.PreconditionFailed):
        store.create("a/b", second)
    replaced = store.replace("a/b", second, created)
    with pytest.raises(s3_errors.PreconditionFailed):
        store.replace("a/b", third, created)
    with pytest.raises(s3_errors.Missing):
        store.replace("a/c", third, created)
    assert store.get("a/b") == replaced
    assert replaced.body == second
    store.create("a/z", body())
    assert store.keys("a/") == ["a/b", "a/z"]
    store.delete("a/b")
    store.delete("a/b")
    assert store.keys("a/") == ["a/z"]


def test_what_has_not_changed_is_not_sent_again(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    store = connect(options)
    known = store.create("key", body())
    assert store.get("key", known) is known
    assert proxy.passed[-1][2] == 304
    changed = store.replace("key", body(), known)
    assert store.get("key", known) == changed


def test_a_long_list_is_read_to_its_end(store: ObjectStore) -> None:
    names = [f"many/{number:04d}" for number in range(1005)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda name: store.create(name, b"x"), names))
    assert store.keys("many/") == names


def test_errors_tell_what_is_wrong(bucket: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def error(**changes: str | None) -> s3_errors.S3Error:
        with pytest.raises(s3_errors.S3Error) as raised:
            connect(bucket | changes).create("key", body())
        return raised.value

    missing = error(bucket="absent")
    assert isinstance(missing, s3_errors.NoSuchBucket)
    assert "absent" in str(missing)
    assert "Create it" in str(missing)
    assert isinstance(error(secret_key=bucket["access_key"]), s3_errors.Denied)
    assert isinstance(error(access_key="unknown"), s3_errors.Denied)
    # A write to where nobody answers is looked for, and then not even that is known.
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


def test_settings_of_aws_are_used_where_no_option_is_given(bucket: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket["secret_key"])
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket["endpoint_url"])
    monkeypatch.setenv("AWS_REGION", bucket["region"])
    store = connect({"bucket": bucket["bucket"]})
    assert store.get("key") is None


DONE_ALL_THE_SAME = {
    "answer lost": Fault("PUT"),
    "500 after it was done": Fault("PUT", status=500),
    "503 after it was done": Fault("PUT", status=503),
    "409 after it was done": Fault("PUT", status=409),
    "412 after it was done, as when a proxy sends twice": Fault("PUT", status=412),
}
NOT_DONE = {
    "request lost": (Fault("PUT", forwarded=False), s3_errors.Unreachable),
    "500": (Fault("PUT", forwarded=False, status=500), s3_errors.ServerError),
    "503": (Fault("PUT", forwarded=False, status=503), s3_errors.ServerError),
    "409": (Fault("PUT", forwarded=False, status=409), s3_errors.PreconditionFailed),
    "412": (Fault("PUT", forwarded=False, status=412), s3_errors.PreconditionFailed),
}


@pytest.mark.parametrize("name", DONE_ALL_THE_SAME)
def test_a_write_that_was_done_all_the_same_is_known_as_done(faulty: tuple[Proxy, Options], name: str) -> None:
    proxy, options = faulty
    store = connect(options)
    like = vars(DONE_ALL_THE_SAME[name])
    known: Stored | None = None
    for _write in ("create", "replace"):
        fault = Fault()
        vars(fault).update(like)
        proxy.faults = [fault]
        before = proxy.count("PUT")
        written = known = store.replace("key", body(), known) if known else store.create("key", body())
        assert fault.times == 0
        assert store.get("key") == written
        # The SDK has repeated nothing: what the proxy answered itself is counted beside what the server did.
        assert proxy.count("PUT") - before == (2 if fault.status else 1)


@pytest.mark.parametrize("name", NOT_DONE)
def test_a_write_that_was_not_done_is_sent_once_and_told(faulty: tuple[Proxy, Options], name: str) -> None:
    proxy, options = faulty
    fault, expected = NOT_DONE[name]
    store = connect(options)
    fault.times = 1
    proxy.faults = [fault]
    with pytest.raises(expected):
        store.create("key", body())
    assert proxy.count("PUT") <= 1
    assert fault.times == 0
    assert store.get("key") is None


def test_reads_are_tried_again(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    store = connect(options)
    written = store.create("key", body())
    for fault in (Fault("GET"), Fault("GET", status=500)):
        proxy.faults = [fault]
        assert store.get("key") == written
        assert fault.times == 0


def test_a_write_of_which_nothing_is_known_says_so(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.faults = [Fault("PUT"), Fault("GET", times=2)]
    with pytest.raises(s3_errors.Unconfirmed):
        connect(options).create("key", body())


def test_no_request_may_take_longer_than_five_seconds() -> None:
    assert s3_library.CONNECT_SECONDS + s3_library.READ_SECONDS <= 5


def test_a_request_that_hangs_is_given_up(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    fault = Fault("GET", times=2, hold=60.0)
    proxy.faults = [fault]
    store = connect(options)
    started = time.monotonic()
    with pytest.raises(s3_errors.Unreachable):
        store.get("key")
    # It has not waited for the proxy to let go.
    assert time.monotonic() - started < fault.hold


def test_a_lock_that_arrives_late_is_nobody_s_lead(faulty: tuple[Proxy, Options]) -> None:
    """The request is given up, and reaches the store afterwards: then it leads nobody, and its writer takes over from itself."""
    proxy, options = faulty
    lease = Lease(connect(options), PLACE, "east", "east-1", 30)
    other = Lease(connect(options), PLACE, "west", "west-1", 30)
    proxy.faults = [Fault("PUT", "/lock", after=8.0, hold=10.0)]
    with pytest.raises(s3_errors.Unreachable):
        lease.attempt()
    assert not lease.acting()
    until(other.look, "the lock that was late")
    assert not other.attempt()
    assert lease.attempt()
    assert lease.epoch == 2


def test_proof_passes_on_a_store_that_honours_conditions(store: ObjectStore) -> None:
    findings = prove(store)
    assert all(finding.passed for finding in findings), coordination_proof.table(findings)
    require(findings, "the store")
    assert store.keys("") == []


def test_store_that_ignores_conditions_is_refused(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.strips_conditions = True
    findings = prove(connect(options))
    failed = {finding.case for finding in findings if not finding.passed}
    assert failed >= {"create what is there", "replace what has changed", "8 create at the same moment", "8 replace at the same moment"}
    with pytest.raises(s3_errors.NoConditions) as refused:
        require(findings, "bucket x")
    assert "does not honour conditional writes" in str(refused.value)
    assert "create what is there: done instead of refused" in str(refused.value)
    assert "proxy" in str(refused.value)
    assert "FAILED" in coordination_proof.table(findings)
