"""The event source s3_coordination: the check of the store, and a real ansible-rulebook that is ended."""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import ConditionalWritesUnsupported
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.s3_proxy import Proxy
from .running import TTL, WORKLOAD, documents

Options = dict[str, Any]
SOURCE = Path(sys.prefix) / "collections/ansible_collections/openfleet/clusters/extensions/eda/plugins/event_source/s3_coordination.py"


@contextmanager
def rulebook(folder: Path, name: str, options: Options) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process that contends for the workload, and the file with its output."""
    source = options | {"holder": name, "workloads": ["shop/database"], "ttl": TTL, "poll_interval": 0.3}
    rule = {
        "name": "Print",
        "condition": "event.type is defined",
        "action": {"debug": {"msg": "EVENT {{ event.type }} {{ event.epoch | default(0) }}"}},
    }
    book = [{"name": name, "hosts": "all", "sources": [{"openfleet.clusters.s3_coordination": source}], "rules": [rule]}]
    (folder / f"{name}.yml").write_text(yaml.safe_dump(book))
    output = folder / f"{name}.log"
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections")}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "ansible-rulebook"), "-r", str(folder / f"{name}.yml")],
            cwd=folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"} | collections,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process, output
    finally:
        process.kill()
        process.wait()


def test_rulebook_gets_events_and_releases_its_leases_on_sigterm(bucket: Options, tmp_path: Path) -> None:
    store = connect(bucket)
    with rulebook(tmp_path, "east", bucket) as (process, output):
        until(lambda: "EVENT leader_acquired 1" in output.read_text(), "east leads")
        until(lambda: "EVENT state_changed 1" in output.read_text(), "east watches")
        lock = read_lock(documents(store), WORKLOAD)
        assert (lock.holder, lock.epoch) == ("east", 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, output.read_text()
    lock = read_lock(documents(store), WORKLOAD)
    assert (lock.holder, lock.epoch) == ("", 1), output.read_text()
    # So the next contender need not wait until the lease expires.
    assert Lease(store, WORKLOAD, "next", "next-1", TTL).try_acquire()


def test_source_does_not_start_on_a_store_that_drops_conditions(faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.drops_conditions = True
    main = runpy.run_path(str(SOURCE))["main"]
    with pytest.raises(ConditionalWritesUnsupported, match="does not honour conditional writes"):
        asyncio.run(main(asyncio.Queue(), options | {"workloads": ["shop/database"]}))
    assert [path for _method, path, _status in proxy.requests if "/drpc-" in path] == []
