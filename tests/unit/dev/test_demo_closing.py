"""The last lines of the demos: what was built, and commands to try next that exist. A whole demo runs in the integration tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.dev import demo, demo_dr, demo_fleet, dr_clusters
from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=sorted(demo.SHOWS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def closing(provider: str, capsys: pytest.CaptureFixture[str]) -> str:
    demo.summary(demo.SHOWS[provider])
    return capsys.readouterr().out


def test_closing_says_what_was_built_before_what_to_try_next(closing: str) -> None:
    built, _heading, following = closing.partition("\nTry next")
    assert following
    assert built.startswith("\nWhat was built: a hub ")
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", gobuild.KUBERNETES_VERSION, "orders/demo"):
        assert name in built


def test_closing_names_a_command_that_exists_for_the_same_provider(provider: str, closing: str) -> None:
    commands = re.findall(r"^  make (\S+)(?: PROVIDER=(\w+))?$", closing, re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [target for target, _provider in commands if target in targets] == ["serve"]
    assert [wanted or "hypershift" for _target, wanted in commands] == [provider]


def test_closing_names_files_that_exist(closing: str) -> None:
    files = re.findall(r"docs/\S+", closing)
    assert len(files) == 2
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert closing.splitlines()[-1].endswith("docs/tutorial.md")


def test_closing_of_disaster_recovery_names_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    demo_dr.summary()
    built, _heading, following = capsys.readouterr().out.partition("\nTry next")
    assert gobuild.KUBERNETES_VERSION in built and str(dr_clusters.WORKLOAD) in built
    clusters = " ".join(f"--cluster {name}" for name in dr_clusters.CLUSTERS)
    assert f"\n  openfleet-sandbox up {clusters} --replication\n" in following
    assert (ROOT / following.split()[-1]).is_file()


def test_closing_of_a_fleet_names_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    demo_fleet.summary()
    built, _heading, following = capsys.readouterr().out.partition("\nTry next")
    assert gobuild.KUBERNETES_VERSION in built
    assert "\n  make serve\n" in following
    assert (ROOT / following.split()[-1]).is_file()
