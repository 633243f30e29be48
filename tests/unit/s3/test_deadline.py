"""A store that hangs or sends byte by byte: every request to it ends in time, and they do not pile up."""

from __future__ import annotations

import threading
import time

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import store
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.deadline import Deadline, Late
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import S3Error, Unreachable

from ...hostile_server import HARM, HEAD, Behaviour, drip, flood, serving

TIMEOUT_SECONDS = 20.0


def connected(address: str) -> store.BotoBucket:
    options = {"bucket": "b", "endpoint_url": f"http://{address}", "region": "r", "access_key": "a", "secret_key": "s"}
    return store.BotoBucket(options, 2)


HANGING: dict[str, Behaviour] = {
    "says nothing": HARM["accepts and says nothing"],
    "drips headers": HARM["drips headers"],
    "drips the object": drip(HEAD + b"ETag: x\r\nContent-Length: 9999\r\n\r\n"),
}


@pytest.mark.parametrize("behave", HANGING.values(), ids=HANGING)
def test_every_request_ends_in_time(behave: Behaviour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "REQUEST_SECONDS", 0.2)
    with serving(behave) as address:
        bucket = connected(address)
        for request in (
            lambda: bucket.read("a"),
            lambda: bucket.write("a", b"x", None),
            lambda: bucket.keys("a"),
            lambda: bucket.delete("a"),
        ):
            began = time.monotonic()
            with pytest.raises(Unreachable, match=r"no answer within 0\.2 s. Check the address"):
                request()
            assert time.monotonic() - began < TIMEOUT_SECONDS


def test_an_object_without_end_is_refused() -> None:
    with serving(flood(HEAD + b'ETag: "x"\r\n\r\n')) as address, pytest.raises(S3Error, match="the object has more than"):
        connected(address).read("a")


def test_calls_that_hang_do_not_pile_up() -> None:
    over, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        over.wait()

    deadline = Deadline(0.05, 2)
    try:
        for why in ("no answer within 0.05 s", "no answer within 0.05 s", "earlier requests hang"):
            with pytest.raises(Late, match=why):
                deadline.call(hang)
    finally:
        over.set()
    assert begun.acquire(timeout=TIMEOUT_SECONDS) and begun.acquire(timeout=TIMEOUT_SECONDS)
    assert not begun.acquire(timeout=0.1), "the third was not begun"
    with pytest.raises(ValueError, match="from the call"):
        Deadline(TIMEOUT_SECONDS, 1).call(lambda: int("from the call"))
