"""The sandbox for tests: one hub for the whole run, a fresh namespace for each test. Also for collections with own templates.

Use it with `pytest_plugins = ["ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin"]`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .access import Access
from .sandbox import Sandbox, StoreAccess

_numbers = itertools.count(1)

# A failed assertion of that suite is explained as those of a test file are.
pytest.register_assert_rewrite("ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance")


@contextlib.contextmanager
def fresh_namespace(cluster: Access) -> Iterator[str]:
    """A new namespace for the test; its deletion continues while the next test runs."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    namespace = cluster.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield name
    finally:
        cluster.kube.delete(namespace)


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
    return Access(sandbox.kubeconfig())


@pytest.fixture(scope="session")
def s3(sandbox: Sandbox) -> StoreAccess:
    sandbox.up(s3=True)
    return sandbox.s3()


@pytest.fixture(scope="session")
def capi_hub(sandbox: Sandbox) -> Access:
    """The hub, with Cluster API's managers and a ClusterClass."""
    sandbox.up(capi=True)
    return Access(sandbox.kubeconfig())


@pytest.fixture
def namespace(hub: Access) -> Iterator[str]:
    """A namespace of the hub for one test."""
    with fresh_namespace(hub) as name:
        yield name
