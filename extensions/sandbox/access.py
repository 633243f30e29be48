"""One cluster of the sandbox, reached as a person would: with the sandbox's own kubectl and a kubeconfig."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from . import gobuild
from .screen import UserError

POLL_SECONDS = 0.2
Result = TypeVar("Result")


@dataclass(frozen=True)
class Access:
    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(gobuild.programs(gobuild.KUBERNETES)["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if check and result.returncode:
            raise UserError(f"kubectl {' '.join(arguments)} failed: {result.stderr.strip() or result.stdout.strip()}")
        return result

    def get(self, *arguments: str) -> Any:
        """The object or list that `kubectl get` answers, or None where there is none."""
        # Not by --ignore-not-found, which answers an empty list with nothing as well.
        result = self.kubectl("get", *arguments, "-o", "json", check=False)
        if result.returncode and "(NotFound)" in result.stderr:
            return None
        if result.returncode:
            raise UserError(f"kubectl get {' '.join(arguments)} failed: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def install_crd(self, crd: dict[str, Any]) -> None:
        """Apply the CRD and return when its kind can be used, which is a little after it is said to be established."""
        name, spec = crd["metadata"]["name"], crd["spec"]
        version = next(version["name"] for version in spec["versions"] if version["served"])

        def is_used() -> bool:
            # Until its schema is published, kubectl checks objects by itself, with other rules than the server's.
            schemas = self.kubectl("get", "--raw", f"/openapi/v3/apis/{spec['group']}/{version}", check=False).stdout
            return f'"kind":"{spec["names"]["kind"]}"' in schemas and self.kubectl("get", name, check=False).returncode == 0

        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(crd))
        until(is_used, f"{name} is served")

    def wait(self, *arguments: str, timeout: str = "300s") -> None:
        self.kubectl("wait", f"--timeout={timeout}", *arguments)


def until(condition: Callable[[], Result], what: str, seconds: float = 300) -> Result:
    """Poll until the condition gives something, and return that."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise UserError(f"Not within {seconds} s: {what}.")
        time.sleep(POLL_SECONDS)
    return result
