"""The sandbox for tests: one hub for the whole run, a fresh namespace for each test. Also for collections with own templates.

Use it with `pytest_plugins = ["ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin"]`.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import gobuild
from .sandbox import Sandbox, StoreAccess

COLLECTION = Path(__file__).resolve().parents[2]
UPSTREAM = Path(os.environ.get("OPENFLEET_UPSTREAM_CRDS", COLLECTION.parent / "shared" / "crds"))
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Access:
    """One cluster of the sandbox, reached as a person would: with kubectl and a kubeconfig."""

    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(gobuild.programs(gobuild.KUBERNETES)["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if check and result.returncode:
            pytest.fail(f"kubectl {' '.join(arguments)}\n{result.stdout}{result.stderr}")
        return result

    def get(self, *arguments: str) -> Any:
        """The object or list that `kubectl get` answers, or None where there is none."""
        result = self.kubectl("get", *arguments, "-o", "json", check=False)
        if result.returncode and "NotFound" in result.stderr:
            return None
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def wait(self, *arguments: str, timeout: str = "120s") -> None:
        self.kubectl("wait", f"--timeout={timeout}", *arguments)

    def new_namespace(self) -> str:
        name = f"test-{os.getpid()}-{next(_numbers)}"
        self.kubectl("create", "namespace", name)
        return name


@pytest.fixture(scope="session")
def new_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sandbox]]:
    """Make sandboxes that end with the test run, even when that is killed."""
    made: list[Sandbox] = []

    def make(**options: Any) -> Sandbox:
        sandbox = Sandbox(tmp_path_factory.mktemp("sandbox") / "state")
        sandbox.up(attached=True, **options)
        made.append(sandbox)
        return sandbox

    yield make
    for sandbox in made:
        sandbox.down()


@pytest.fixture(scope="session")
def sandbox(new_sandbox: Callable[..., Sandbox]) -> Sandbox:
    return new_sandbox()


@pytest.fixture(scope="session")
def hub(sandbox: Sandbox) -> Access:
    """The hub, with the CRDs that are written here."""
    return Access(sandbox.kubeconfig())


@pytest.fixture(scope="session")
def upstream_hub(new_sandbox: Callable[..., Sandbox]) -> Access:
    """A second hub, with HyperShift's own CRDs."""
    crds = UPSTREAM / "hypershift"
    if not crds.is_dir():
        pytest.skip(f"HyperShift's own CRDs are not at {crds}; OPENFLEET_UPSTREAM_CRDS names the folder that has them")
    return Access(new_sandbox(hypershift_crds=crds).kubeconfig())


@pytest.fixture(scope="session")
def s3(sandbox: Sandbox) -> StoreAccess:
    sandbox.up(s3=True)
    return sandbox.s3()


@pytest.fixture
def namespace(hub: Access) -> Iterator[str]:
    """A namespace of the hub for one test."""
    name = hub.new_namespace()
    yield name
    hub.kubectl("delete", "namespace", name, "--wait=false")
