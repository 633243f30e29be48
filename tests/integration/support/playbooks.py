"""Tasks run by a real `ansible-playbook` at its most talkative, and what each of them answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

Task = dict[str, Any]

COLLECTION = "openfleet.clusters"
GROUP = f"group/{COLLECTION}.kubernetes"
RUN_SECONDS = 900

# Writes down what each task answered, as Ansible would show it.
RECORDER = """
import json
import os
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "recorder"

    def _write(self, result, failed):
        with open(os.environ["RECORD"], "a") as record:
            record.write(json.dumps([result._task.get_name(), failed, json.loads(self._dump_results(result._result))]) + "\\n")

    def v2_runner_on_ok(self, result):
        self._write(result, False)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._write(result, True)
"""


@dataclass(frozen=True)
class Answer:
    failed: bool
    result: Object

    @property
    def changed(self) -> bool:
        return bool(self.result.get("changed"))

    @property
    def message(self) -> str:
        assert self.failed, self.result
        return str(self.result["msg"])


@dataclass(frozen=True)
class Played:
    """A run that has ended. `answers` are by the names of the tasks."""

    code: int
    output: str
    answers: dict[str, Answer]

    def __getitem__(self, task: str) -> Answer:
        assert task in self.answers, self.output
        return self.answers[task]

    def fine(self, task: str) -> Answer:
        answer = self[task]
        assert not answer.failed, answer.result
        return answer


def task(module: str, called: str, /, *, check: bool = False, **arguments: Any) -> Task:
    """A task that shows its diff, in check mode if asked for, and does not end the run when it fails."""
    return {"name": called, f"{COLLECTION}.{module}": arguments, "check_mode": check, "diff": True, "ignore_errors": True}


def play(
    folder: Path,
    tasks: list[Task],
    *options: str,
    defaults: Object | None = None,
    secrets: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    **variables: Any,
) -> Played:
    """Run the tasks with `defaults` for the whole action group. `secrets` are variables from a file, as those of a vault are."""
    (folder / "callbacks").mkdir(exist_ok=True)
    (folder / "callbacks/recorder.py").write_text(RECORDER, encoding="utf-8")
    (folder / "secrets.yml").write_text(yaml.safe_dump(dict(secrets or {})), encoding="utf-8")
    record = folder / "record"
    record.write_text("", encoding="utf-8")
    book = {
        "name": "Play",
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {GROUP: defaults or {}},
        "vars": variables,
        "vars_files": [str(folder / "secrets.yml")],
        "tasks": tasks,
    }
    (folder / "play.yml").write_text(yaml.safe_dump([book], sort_keys=False), encoding="utf-8")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))}
    settings = {
        "HOME": str(folder),
        "RECORD": str(record),
        "ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"),
        "ANSIBLE_CALLBACK_PLUGINS": str(folder / "callbacks"),
        "ANSIBLE_CALLBACKS_ENABLED": "recorder",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
    }
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "play.yml", "-vvvv", *options],
        cwd=folder,
        env=inherited | settings | dict(environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    lines = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    return Played(done.returncode, done.stdout, {name: Answer(failed, result) for name, failed, result in lines})
