"""API definitions from Go modules: downloaded once, verified, and with an error to act on where that fails. No hub is needed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import upstream
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError

VERSION = "v0.0.0-20251120083117-dea6d2f24af6"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def first_call() -> Iterator[None]:
    upstream.folder.cache_clear()
    yield
    upstream.folder.cache_clear()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's module cache without any module."""
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOFLAGS", "-modcacherw")


@pytest.mark.usefixtures("empty_cache")
def test_registry_that_does_not_answer_is_reported_with_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOPROXY", NOWHERE)
    with pytest.raises(UserError, match=r"Go cannot download HyperShift's CRDs: check the network, the proxy or GOPROXY.*refused"):
        upstream.folder(upstream.HYPERSHIFT)
    assert "✘ HyperShift's CRDs" in capsys.readouterr().out


@pytest.mark.usefixtures("empty_cache")
def test_module_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = tmp_path / "proxy" / upstream.HYPERSHIFT.path / "@v"
    served.mkdir(parents=True)
    module = f"module {upstream.HYPERSHIFT.path}\n"
    (served / f"{VERSION}.info").write_text(f'{{"Version": "{VERSION}"}}')
    (served / f"{VERSION}.mod").write_text(module)
    with zipfile.ZipFile(served / f"{VERSION}.zip", "w") as archive:
        archive.writestr(f"{upstream.HYPERSHIFT.path}@{VERSION}/go.mod", module)
    monkeypatch.setenv("GOPROXY", (tmp_path / "proxy").as_uri())
    with pytest.raises(UserError, match="checksum mismatch"):
        upstream.folder(upstream.HYPERSHIFT)


def test_downloaded_module_needs_no_network_and_no_line_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = upstream.folder(upstream.HYPERSHIFT)
    upstream.folder.cache_clear()
    capsys.readouterr()
    monkeypatch.setenv("GOPROXY", NOWHERE)
    assert upstream.folder(upstream.HYPERSHIFT) == first
    assert capsys.readouterr().out == ""


def test_node_pools_can_be_scaled_as_where_hypershift_is_installed() -> None:
    clusters, pools = upstream.hypershift_crds()
    assert [crd["spec"]["names"]["kind"] for crd in (clusters, pools)] == ["HostedCluster", "NodePool"]
    (version,) = pools["spec"]["versions"]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    assert "status" in version["subresources"]
