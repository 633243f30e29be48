"""Ports for programs that bind them later."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import processes
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import PORTS, free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test: the ports are not those of programs that other tests start meanwhile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "openfleet"


def test_no_two_calls_return_the_same_port_and_none_is_one_that_the_kernel_gives_to_others() -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _number: free_port(), range(300)))
    assert len(set(found)) == 300
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    assert max(found) < max(lowest, PORTS.stop)


@pytest.mark.parametrize("spoilt", ["", "x", "1", "19999"])
def test_port_in_use_is_skipped_and_a_spoilt_file_begins_again(cache: Path, monkeypatch: pytest.MonkeyPatch, spoilt: str) -> None:
    cache.mkdir()
    (cache / "last-port").write_text(spoilt, encoding="utf-8")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        first = taken.getsockname()[1]
        monkeypatch.setattr(processes, "PORTS", range(first, first + 100))
        assert free_port() != first


def test_no_free_port_is_one_sentence(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "port_in_use", lambda _port: True)
    with pytest.raises(UserError, match="Every port from 10000 to 19999 is in use"):
        free_port()
    assert (cache / "last-port").read_text(encoding="utf-8") == ""
