"""Every test may use the sandbox: see its pytest plugin for the fixtures."""

import os
import signal

import pytest

pytest_plugins = [
    "ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin",
    "ansible_collections.openfleet.clusters.tests.given_files",
    "ansible_collections.openfleet.clusters.tests.integration.support.gitops",
]

# A shell that starts something in the background makes it ignore Ctrl-C, and so would every process that a test starts
# and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def soak() -> int:
    """The factor for the number of random rounds: 1, or OPENFLEET_SOAK."""
    return int(os.environ.get("OPENFLEET_SOAK") or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test whose rounds the factor multiplies is one that `make soak` repeats."""
    for item in items:
        if "soak" in getattr(item, "fixturenames", ()):
            item.add_marker("soak")
