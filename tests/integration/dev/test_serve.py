"""The supervisor with a real ansible-rulebook below it: whenever the engine ends unasked that is an error, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until

from ..support.deployment import SERVE
from ..support.engines import COLLECTIONS, RULEBOOK, Engine

IMPATIENT = f"""
import sys
sys.path.insert(0, {str(SERVE.parent)!r})
import serve
serve.GRACE_SECONDS = 1
sys.exit(serve.main(sys.argv[1:]))
"""
HUB = """
apiVersion: v1
kind: Config
current-context: silent
clusters: [{name: silent, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: silent, user: {token: made-up}}]
contexts: [{name: silent, context: {cluster: silent, user: silent}}]
"""
SITE = """
- name: A site's own rules
  hosts: localhost
  sources:
    - once: {{}}
  rules:
    - name: The only one
      condition: event.action == "run"
      action: {action}
"""
SOURCE = f"""
import asyncio
import sys
sys.path.append({str(COLLECTIONS)!r})
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals

async def main(queue, args):
    restore_signals()
    await queue.put({{"action": "run"}})
    await asyncio.Event().wait()
"""
RUN = """
- name: A run that takes its time
  hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{{{ ansible_playbook_python }}}}"
  tasks:
    - name: Leave something behind
      ansible.builtin.command: sleep 600
      async: 600
      poll: 0
      when: {leaves_something}
    - name: Show that it is here
      ansible.builtin.file: {{path: "{folder}/here", state: touch, mode: "0600"}}
    - name: Take its time
      ansible.builtin.wait_for: {{path: "{folder}/resume", sleep: 1}}
    - name: Show that it has come to its end
      ansible.builtin.file: {{path: "{folder}/end", state: touch, mode: "0600"}}
"""


class Supervised(Engine):
    """An engine below the supervisor, on a hub that does not answer."""

    def __init__(self, folder: Path, rulebook: str = RULEBOOK, patient: bool = True, **variables: Any) -> None:
        (folder / "kubeconfig").write_text(HUB, encoding="utf-8")
        super().__init__(Access(folder / "kubeconfig"), folder, rulebook, ("-S", str(folder / "sources")), **variables)
        self._command[:1] = [sys.executable, *([str(SERVE)] if patient else ["-c", IMPATIENT])]

    def rules(self) -> int:
        """The process of the engine itself."""
        return next(process for process in self.processes("bin/ansible-rulebook") if self.process and process != self.process.pid)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Supervised]]:
    """Start an engine, which ends with the test at the latest."""
    begun: list[Supervised] = []

    def start(*rulebook: str, **settings: Any) -> Supervised:
        begun.append(Supervised(tmp_path, *rulebook, **settings))
        begun[-1].start(wait=False)
        return begun[-1]

    yield start
    for engine in begun:
        engine.stop()


def site(folder: Path, action: str) -> str:
    """The path of rules that have one event."""
    (folder / "sources").mkdir()
    (folder / "sources/once.py").write_text(SOURCE, encoding="utf-8")
    (folder / "rules.yml").write_text(SITE.format(action=action), encoding="utf-8")
    return str(folder / "rules.yml")


def with_a_run(folder: Path, leaves_something: bool = False) -> str:
    """Rules that start a playbook; it is in the middle of its work when there is a file `here`."""
    (folder / "site").mkdir()  # of its own: the engine copies the folder of a playbook
    (folder / "site/run.yml").write_text(RUN.format(folder=folder, leaves_something=leaves_something), encoding="utf-8")
    return site(folder, f"{{run_playbook: {{name: {folder}/site/run.yml}}}}")


def test_arguments_that_the_source_cannot_work_with_are_an_error(begin: Callable[..., Supervised]) -> None:
    engine = begin(source={"batch_size": 0})
    assert engine.wait() == 1
    assert "batch_size must be at least 1" in engine.text()
    assert engine.text().endswith("serve.py: ansible-rulebook ended with exit code 1 unexpectedly; its last lines are above.\n")


def test_an_address_in_use_is_an_error(begin: Callable[..., Supervised]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        engine = begin(source={"webhook": {"port": taken.getsockname()[1]}})
        assert engine.wait() == 1
    assert engine.said("Address already in use")
    assert engine.processes() == []


def test_an_undefined_variable_is_an_error_though_the_engine_calls_it_none(tmp_path: Path, begin: Callable[..., Supervised]) -> None:
    engine = begin(site(tmp_path, '{debug: {msg: "{{ undefined_variable }}"}}'))
    assert engine.wait() == 1
    assert engine.said("serve.py: ansible-rulebook ended with exit code 0 unexpectedly")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_engine_and_its_run_and_succeeds(tmp_path: Path, begin: Callable[..., Supervised], how: signal.Signals) -> None:
    engine = begin(with_a_run(tmp_path))
    until((tmp_path / "here").exists, f"the run has begun; the log is {engine.log}")
    assert engine.process
    engine.process.send_signal(how)
    until(lambda: engine.said("Received signal"), "the engine has the signal")
    (tmp_path / "resume").touch()  # the engine cancels the run, or waits for its end: which of them depends on the moment
    assert engine.wait() == 0
    assert engine.processes() == []


def test_a_run_that_outlasts_the_grace_time_ends_with_the_engine(tmp_path: Path, begin: Callable[..., Supervised]) -> None:
    engine = begin(with_a_run(tmp_path), patient=False)
    until((tmp_path / "here").exists, f"the run has begun; the log is {engine.log}")
    assert engine.process
    engine.process.send_signal(signal.SIGTERM)
    assert engine.wait() == 0
    assert engine.said("Received signal")
    assert engine.processes() == []
    assert not (tmp_path / "end").exists()


def test_a_killed_engine_is_an_error_and_what_it_leaves_behind_is_killed_too(tmp_path: Path, begin: Callable[..., Supervised]) -> None:
    engine = begin(with_a_run(tmp_path, leaves_something=True), patient=False)
    until((tmp_path / "here").exists, f"the run has begun; the log is {engine.log}")
    os.kill(engine.rules(), signal.SIGKILL)
    assert engine.wait() == 128 + signal.SIGKILL
    assert engine.processes() == []
    assert engine.said("was killed by SIGKILL unexpectedly")
    assert not (tmp_path / "end").exists()
