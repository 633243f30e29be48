"""Helm repositories and registries over HTTP: what is read of them, and what of a hostile one is refused.

The Helm repository is a real one, which is a folder of files. The registry is a stand-in for the distribution API; the real one is in
tests/integration/gitops.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.semantic_version import Version
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles import fetch
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.chart_archive import BadChart, read_chart
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.charts import Charts
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.errors import RepositoryFailed
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.fetch import Deadline
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.repository_charts import RepositoryCharts
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.profile_offer import ChartRepository, ProfileOffer

from ..http_server import Reply, Request, Server, serving
from .charts_in_memory import packed

TOKEN = "t0ken"  # noqa: S105
ARCHIVE = packed("web", "1.2.0", {"values.yaml": "a: 1\n"})
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


def version(text: str) -> Version:
    found = Version.parse(text)
    assert found
    return found


class Files(dict[str, Reply]):
    """Answers by path; anything else is 404."""

    def __call__(self, request: Request) -> Reply:
        return self.get(request.path, Reply(404))


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def server(files: Files) -> Iterator[Server]:
    with serving(files) as running:
        yield running


def repository(server: Server, scheme: str = "http", **more: Any) -> RepositoryCharts:
    known = ChartRepository("acme", f"{scheme}://{server.host}/charts", insecure=True, **more)
    return Charts(ProfileOffer({"acme": known})).of("acme")


def index(*entries: dict[str, Any], chart: str = "web") -> Reply:
    return Reply(200, yaml.safe_dump({"apiVersion": "v1", "entries": {chart: list(entries)}}).encode())


ENTRY = {"version": "1.2.0", "urls": ["web-1.2.0.tgz"], "digest": DIGEST, "annotations": {"openfleet.clusters/layer": "3"}}


def test_a_helm_repository(files: Files, server: Server) -> None:
    files["/charts/index.yaml"] = index(ENTRY, {"version": "1.10.0"}, {"version": "not one"})
    files["/charts/web-1.2.0.tgz"] = Reply(200, ARCHIVE)
    charts, deadline = repository(server), Deadline()
    assert [str(item) for item in charts.versions("web", deadline)] == ["1.10.0", "1.2.0"]
    assert charts.versions("unknown", deadline) == []
    assert charts.metadata("web", version("1.2.0"), deadline).layer == 3
    fetched = charts.fetch("web", version("1.2.0"), deadline)
    assert (fetched.archive, fetched.digest) == (ARCHIVE, f"sha256:{DIGEST}")
    assert [item.path for item in server.asked].count("/charts/index.yaml") == 1, "the index is read once"
    assert not any("authorization" in item.headers for item in server.asked)


class Registry(Files):
    """Stand-in for a registry: one chart, with a token for anonymous clients if it wants one."""

    def __init__(self, *, token: str = "") -> None:
        super().__init__()
        config = json.dumps({"name": "web", "version": "1.2.0", "annotations": {"openfleet.clusters/requires": '{"db": ">=1"}'}}).encode()
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": self.blob(config)},
                "layers": [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": self.blob(ARCHIVE)}],
            }
        ).encode()
        self["/v2/charts/web/tags/list?n=1000"] = Reply(
            200, b'{"tags": ["1.2.0", "latest"]}', {"Link": '</v2/charts/web/tags/list?n=1000&last=x>; rel="next"'}
        )
        self["/v2/charts/web/tags/list?n=1000&last=x"] = Reply(200, b'{"tags": ["1.3.0_build.1"]}')
        for tag in ("1.2.0", "1.3.0_build.1"):
            self[f"/v2/charts/web/manifests/{tag}"] = Reply(200, self.manifest)
        self.token, self.realm = token, ""

    def blob(self, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self[f"/v2/charts/web/blobs/{digest}"] = Reply(200, content)
        return digest

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/token?"):
            return Reply(200, json.dumps({"token": self.token}).encode())
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(401, b"", {"WWW-Authenticate": f'Bearer realm="{self.realm}",service="x",scope="repository:charts/web:pull"'})
        return super().__call__(request)


@pytest.mark.parametrize("token", ["", "t0ken"])
def test_a_registry(token: str) -> None:
    registry = Registry(token=token)
    with serving(registry) as server:
        registry.realm = f"{server.url}/token"
        charts, deadline = repository(server, "oci"), Deadline()
        assert [str(item) for item in charts.versions("web", deadline)] == ["1.3.0+build.1", "1.2.0"]
        assert charts.versions("unknown", deadline) == []
        assert charts.metadata("web", version("1.3.0+build.1"), deadline).requires["db"].text == ">=1"
        fetched = charts.fetch("web", version("1.2.0"), deadline)
        assert (fetched.archive, fetched.digest) == (ARCHIVE, f"sha256:{hashlib.sha256(registry.manifest).hexdigest()}")


def test_a_registry_that_wants_a_login_says_what_to_do() -> None:
    registry = Registry(token=TOKEN)
    with serving(registry) as server, pytest.raises(RepositoryFailed, match="allow anonymous reads"):
        repository(server, "oci").versions("web", Deadline())


def test_a_token_is_fetched_from_hosts_of_the_site_only() -> None:
    registry = Registry(token=TOKEN)
    with serving(registry) as server, serving(lambda _request: Reply(200, b'{"token": "t0ken"}')) as other:
        registry.realm = f"{other.url}/token"
        with pytest.raises(RepositoryFailed, match="add the host to its hosts"):
            repository(server, "oci").versions("web", Deadline())
        assert other.asked == []
        assert repository(server, "oci", hosts=(other.host,)).versions("web", Deadline())


def test_a_blob_with_another_digest_is_refused() -> None:
    registry = Registry()
    registry[f"/v2/charts/web/blobs/sha256:{DIGEST}"] = Reply(200, b"other")
    with serving(registry) as server, pytest.raises(RepositoryFailed, match="has not the digest"):
        repository(server, "oci").fetch("web", version("1.2.0"), Deadline())


@pytest.mark.parametrize("how", ["redirect", "index"])
def test_other_hosts_are_asked_only_if_the_site_names_them(files: Files, server: Server, how: str) -> None:
    with serving(lambda _request: Reply(200, ARCHIVE)) as other:
        address = f"{other.url}/web.tgz"
        files["/charts/index.yaml"] = index(ENTRY | ({"urls": [address]} if how == "index" else {}))
        files["/charts/web-1.2.0.tgz"] = Reply(302, b"", {"Location": address})
        with pytest.raises(RepositoryFailed, match="add the host to its hosts"):
            repository(server).fetch("web", version("1.2.0"), Deadline())
        assert other.asked == []
        assert repository(server, hosts=(other.host,)).fetch("web", version("1.2.0"), Deadline()).archive == ARCHIVE


@pytest.mark.parametrize("account", ["{other}\\", "user"])
def test_an_address_with_an_account_is_refused(files: Files, server: Server, account: str) -> None:
    """Of an address with a backslash, the library that connects takes the first host and others the second."""
    with serving(lambda _request: Reply(200, ARCHIVE)) as other:
        address = f"http://{account.format(other=other.host)}@{server.host}/charts/web-1.2.0.tgz"
        files |= {"/charts/index.yaml": index(ENTRY | {"urls": [address]}), "/charts/web-1.2.0.tgz": Reply(200, ARCHIVE)}
        with pytest.raises(RepositoryFailed, match="add the host to its hosts"):
            repository(server).fetch("web", version("1.2.0"), Deadline())
        assert other.asked == []


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ({}, "index.yaml cannot be fetched: the answer is 404"),
        ({"/charts/index.yaml": Reply(500)}, "index.yaml answers 500"),
        ({"/charts/index.yaml": Reply(200, b"[1, 2")}, "index.yaml is not valid YAML"),
        ({"/charts/index.yaml": Reply(200, b"a: &a [1]\nb: *a\n")}, "YAML alias"),
        ({"/charts/index.yaml": Reply(200, b"hello")}, "index.yaml has no entries"),
        ({"/charts/index.yaml": Reply(302, b"", {"Location": "/charts/index.yaml"})}, "redirects more than 5 times"),
        ({"/charts/index.yaml": Reply(302, b"", {"Location": "file:///etc/passwd"})}, "add the host to its hosts"),
        ({"/charts/index.yaml": index(ENTRY | {"urls": []})}, "its index has no address of web 1.2.0"),
        ({"/charts/index.yaml": index(ENTRY)}, "the archive of web 1.2.0 cannot be fetched: the answer is 404"),
        ({"/charts/index.yaml": index(ENTRY), "/charts/web-1.2.0.tgz": Reply(200, b"other")}, "has not the digest"),
    ],
)
def test_what_a_repository_cannot_be_used_for(files: Files, server: Server, paths: dict[str, Reply], problem: str) -> None:
    files.update(paths)
    with pytest.raises(RepositoryFailed, match="The chart repository acme cannot be used: ") as error:
        repository(server).fetch("web", version("1.2.0"), Deadline())
    assert problem in str(error.value)


@pytest.mark.parametrize("packed_twice", [False, True])
def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    files: Files, server: Server, monkeypatch: pytest.MonkeyPatch, packed_twice: bool
) -> None:
    monkeypatch.setattr("ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.helm_repository.MAX_INDEX", 1000)
    body = b"#" * 200_000
    files["/charts/index.yaml"] = Reply(200, gzip.compress(body), {"Content-Encoding": "gzip"}) if packed_twice else Reply(200, body)
    with pytest.raises(RepositoryFailed, match="is larger than 0 KiB"):
        repository(server).versions("web", Deadline())


def test_a_slow_answer_ends_at_the_deadline_and_later_orders_do_not_wait(
    files: Files, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "REQUEST_SECONDS", 0.3)
    files["/charts/index.yaml"] = Reply(200, b"x" * 1000, drip=0.05)
    charts = repository(server)
    with pytest.raises(RepositoryFailed, match="does not answer in time"):
        charts.versions("web", Deadline())
    with pytest.raises(RepositoryFailed, match="does not answer in time"):
        charts.versions("web", Deadline())
    assert len(server.asked) <= 1, "the second order asked nothing"  # the server may have begun late with the first one


def test_without_time_nothing_is_asked(files: Files, server: Server) -> None:
    files["/charts/index.yaml"] = index(ENTRY)
    with pytest.raises(RepositoryFailed, match="within 30 seconds"):
        repository(server).versions("web", Deadline(0))
    assert server.asked == []


def test_a_dead_repository_is_an_error_that_can_pass() -> None:
    with serving(Files()) as server:
        charts = repository(server)
    with pytest.raises(RepositoryFailed, match="cannot be reached") as error:
        charts.versions("web", Deadline())
    assert error.value.retryable


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (b"", "is not the archive of a chart"),
        (b"no archive", "is not the archive of a chart"),
        (gzip.compress(b"no archive"), "is not the archive of a chart"),
        (gzip.compress(bytes(1024)), "has no Chart.yaml"),
        (gzip.compress(bytes(65 * 1024 * 1024)), "is larger than 64 MiB when it is unpacked"),
        (packed("web", "1.0.0", {"values.yaml": "- 1"}), "has a values.yaml that is not a mapping"),
        (packed("web", "1.0.0", {"values.yaml": "{"}), "has a values.yaml that is not valid YAML"),
        (packed("web", "1.0.0", {"values.schema.json": "{"}), "has a values.schema.json that is not JSON"),
        (packed("web", "1.0.0", {"values.yaml": "#" * 2_000_000}), "has a values.yaml larger than 1024 KiB"),
    ],
    ids=["empty", "no gzip", "no tar", "no file", "too large", "no mapping", "no YAML", "no JSON", "large values"],
)
def test_what_is_no_chart(archive: bytes, problem: str) -> None:
    with pytest.raises(BadChart) as error:
        read_chart(archive)
    assert str(error.value) == problem
