"""The module as a site runs it, with its ledger on a hub: its process is killed several times, and the next one completes the work."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace

from ..support.platform_documents import content_of
from ..support.platform_runs import Runs

MODULE = "openfleet.clusters.platform_configuration"
KILLED_AFTER = (2, 10, 10)  # writes of the first, the second and the third process


class Module:
    """The module in a process of its own."""

    def __init__(self, platform: Platform, url: str, hub: Access, namespace: str) -> None:
        self._platform = platform
        self._given = {"aap_hostname": url, "aap_token": platform.token(), "kubeconfig": str(hub.kubeconfig), "site_namespace": namespace}

    def start(self, **given: Any) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).parent / "ansible"), "localhost", "-m", MODULE, "-a", json.dumps(self._given | given)]
        environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"), "ANSIBLE_NOCOLOR": "1"}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, **given: Any) -> dict[str, Any]:
        process = self.start(**given)
        output, _errors = process.communicate()
        assert process.returncode == 0, output
        result: dict[str, Any] = json.loads(output[output.index("{") : output.rindex("}") + 1])
        return result

    def killed_after(self, writes: int, **given: Any) -> None:
        """Start it, and kill its processes when so many writes were done and another one arrives."""
        done = len(self._platform.writes())
        process = self.start(**given)

        def kill(request: Any) -> None:
            if request.is_write and len(self._platform.writes()) - done > writes:
                for pid in _with_descendants(process.pid):  # first the one that would notice the end of the others
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                raise ConnectionResetError

        self._platform.before = kill
        output, _errors = process.communicate()
        self._platform.before = lambda _request: None
        assert process.returncode == -signal.SIGKILL, output


def _with_descendants(pid: int) -> list[int]:
    """A process and all below it: the module runs in one that Ansible starts in a session of its own."""
    children: list[str] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(found for child in children for found in _with_descendants(int(child)))]


@pytest.fixture
def module(quick_hub: Access) -> Iterator[tuple[Module, Platform]]:
    platform = Platform(gateway=True)
    with fresh_namespace(quick_hub) as namespace, platform.serving() as url:
        yield Module(platform, url, quick_hub, namespace), platform


def test_a_module_that_is_killed_several_times_completes_without_duplicates_and_orphans(module: tuple[Module, Platform]) -> None:
    ours, platform = module
    content, undisturbed = document(), Platform(gateway=True)
    empty = content_of(platform)
    with undisturbed.serving() as url:
        Runs(undisturbed, url).run(content)
    for writes in KILLED_AFTER:
        ours.killed_after(writes, document=content)
    assert ours.run(document=content)["changed"] is True
    assert content_of(platform) == content_of(undisturbed)
    second = ours.run(document=content)
    assert (second["changed"], second["plan"]) == (False, [])
    assert ours.run(state="absent")["changed"] is True
    assert content_of(platform) == empty
