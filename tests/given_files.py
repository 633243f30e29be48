"""Files that a run may lack and a person can give, and a table of the tests that ran without them or were skipped, at the end of a run.

A test that needs such a file has the marker of it and runs on a stand-in where the file was not given.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import upstream
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import AGENTS_CRD, load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.setup import UPSTREAM_CRDS
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.tests.integration.support import metallb_crds as metallb
from ansible_collections.openfleet.clusters.tests.integration.support.osac_crd import stand_in

MISSING = "missing"
RAMEN_CRDS = ("Ramen's CRDs; older ones of its Go module took their place", f"{UPSTREAM_CRDS}=FOLDER, with a folder ramen in it")
OSAC_CRDS = ("OSAC's CRDs; a stand-in took their place", "--osac-crds=FOLDER")
METALLB_CRDS = ("MetalLB's CRDs, which the Go proxy refuses; a stand-in took their place", "GOPROXY=ADDRESS of one that has them")
AGENT_CRDS = ("the infrastructure operator's CRD of Agents; a stand-in took its place", "--agent-crds=FOLDER")
COLUMNS = ("test", "what is missing", "how to give it")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "a folder with OSAC's CRDs of ClusterOrder, <API group>_clusterorders.yaml, to test with them rather than with a stand-in"
    parser.addoption("--osac-crds", type=Path, metavar="FOLDER", help=text)
    text = "a folder with the infrastructure operator's CRD of Agents, agents.yaml, to test with it rather than with a stand-in"
    parser.addoption("--agent-crds", type=Path, metavar="FOLDER", help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "osac_crds: uses OSAC's CRDs")
    config.addinivalue_line("markers", "metallb_crds: uses MetalLB's CRDs")
    config.addinivalue_line("markers", "agent_crds: uses the infrastructure operator's CRD of Agents")
    config.addinivalue_line("markers", "ramen_crds: uses Ramen's CRDs")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, missing in {"osac_crds": OSAC_CRDS, "agent_crds": AGENT_CRDS}.items():
        if item.get_closest_marker(marker) and not item.config.getoption(marker):
            # A property of the report, so that it also comes from a worker of pytest-xdist.
            item.user_properties.append((MISSING, missing))
    if item.get_closest_marker("metallb_crds") and _metallb_crds() is None:
        item.user_properties.append((MISSING, METALLB_CRDS))
    if item.get_closest_marker("ramen_crds") and not os.environ.get(UPSTREAM_CRDS):
        item.user_properties.append((MISSING, RAMEN_CRDS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports if isinstance(report, pytest.TestReport)]
    rows = sorted({row for report in reports for row in _missing(report)})
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    terminalreporter.section("not tested to the full")
    for row in (COLUMNS, *rows):
        terminalreporter.line("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _missing(report: pytest.TestReport) -> Iterator[tuple[str, str, str]]:
    """What the test did without. The reason of a skipped one is `what is missing: how to give it`."""
    for name, value in report.user_properties:
        if name == MISSING:
            missing, given_by = cast(Sequence[str], value)
            yield report.nodeid, missing, given_by
    if report.skipped and isinstance(report.longrepr, tuple):
        what, _colon, how = report.longrepr[2].removeprefix("Skipped: ").partition(": ")
        yield report.nodeid, what, how


@pytest.fixture(scope="session")
def osac_crd(pytestconfig: pytest.Config) -> Callable[[str], dict[str, Any]]:
    """OSAC's CRD of orders in an API group: the one that the run was given, else a stand-in."""
    folder: Path | None = pytestconfig.getoption("osac_crds")
    return (lambda group: load_crd(folder / f"{group}_clusterorders.yaml")) if folder else stand_in


@pytest.fixture(scope="session")
def metallb_crds() -> list[dict[str, Any]]:
    """MetalLB's CRDs of address pools and advertisements: those of its Go module, else stand-ins."""
    return _metallb_crds() or metallb.stand_ins()


@functools.cache
def _metallb_crds() -> list[dict[str, Any]] | None:
    with contextlib.suppress(UserError):
        return upstream.metallb_crds()
    return None


@pytest.fixture(scope="session")
def agent_crd(pytestconfig: pytest.Config) -> dict[str, Any]:
    """The infrastructure operator's CRD of Agents: the one that the run was given, else the sandbox's."""
    folder: Path | None = pytestconfig.getoption("agent_crds")
    return load_crd(folder / "agents.yaml" if folder else AGENTS_CRD)
