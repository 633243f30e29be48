"""Flux's manifests: only those that the digest pins, and nothing in them but Flux."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops import flux_manifests
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.flux_manifests import (
    ManifestSource,
    parse_manifests,
    read_manifests,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.objects import CONTROLLERS, controller_objects
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid, KubeError, Unreachable

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gitrepositories.source.toolkit.fluxcd.io"},
    "spec": {"group": "source.toolkit.fluxcd.io"},
}
NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system", "labels": {"a": "b"}}}
DEPLOYMENT: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "source-controller", "namespace": "flux-system"}}


def written(*items: Any) -> bytes:
    return yaml.safe_dump_all(items or (NAMESPACE, CRD, DEPLOYMENT)).encode()


def named(item: Object, **metadata: Any) -> Object:
    return item | {"metadata": item["metadata"] | metadata}


def pinned(content: bytes, **where: str) -> ManifestSource:
    return ManifestSource(hashlib.sha256(content).hexdigest(), version="v2.9.5", **where)


def test_the_definitions_are_apart_and_the_namespace_says_what_there_has_to_be(tmp_path: Path) -> None:
    file = tmp_path / "flux.yaml"
    file.write_bytes(written())
    manifests = read_manifests(pinned(written(), path=str(file)))
    assert [item["kind"] for item in manifests.crds] == ["CustomResourceDefinition"]
    namespace, *others = controller_objects(manifests)
    assert [item["kind"] for item in others] == ["Deployment"]
    assert namespace["metadata"]["labels"] == {"a": "b"}
    assert namespace["metadata"]["annotations"] == {
        "openfleet.clusters/flux-version": "v2.9.5",
        "openfleet.clusters/flux-digest": hashlib.sha256(written()).hexdigest(),
        CONTROLLERS: "source-controller",
    }


def test_a_file_without_a_namespace_gets_one() -> None:
    manifests = parse_manifests(written(CRD, DEPLOYMENT), pinned(b""))
    assert controller_objects(manifests)[0]["metadata"]["name"] == "flux-system"


def test_other_bytes_than_the_pinned_ones_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "flux.yaml"
    file.write_bytes(written() + b"\n")
    with pytest.raises(Invalid, match=r"flux\.yaml have the SHA-256 digest .* not .*: check that"):
        read_manifests(pinned(written(), path=str(file)))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (written(CRD), "it has no Deployment"),
        (written(DEPLOYMENT), "it has no CustomResourceDefinition"),
        (written(CRD, DEPLOYMENT, NAMESPACE | {"metadata": {"name": "kube-system"}}), "Namespace kube-system is not flux-system"),
        (written(CRD, named(DEPLOYMENT, namespace="default")), "Deployment source-controller is not in the namespace flux-system"),
        (
            written(CRD, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "flux-system"}}),
            "of a kind that Flux",
        ),
        (written(CRD | {"spec": {"group": "example.com"}}, DEPLOYMENT), "is of another project"),
        (written(CRD | {"spec": "x"}, DEPLOYMENT), "is of another project"),
        (written(CRD, DEPLOYMENT, ["x"]), "document 3 is not a Kubernetes object"),
        (written(CRD, DEPLOYMENT, {"metadata": {}}), "document 3 is not a Kubernetes object"),
        (b"a: &a [1]\nb: *a\n", "has a YAML alias"),
        (b"a: [", "is not valid YAML"),
        (b"", "it has no CustomResourceDefinition"),
        (b"x: 1\n" * (9 * 2**20 // 5), "is larger than"),
    ],
)
def test_a_file_with_anything_but_flux_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        parse_manifests(content, pinned(content))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"sha256": "abc", "path": "/x"}, "64 hexadecimal digits"),
        ({"sha256": "a" * 64}, "one of path and url"),
        ({"sha256": "a" * 64, "path": "/x", "url": "https://x"}, "one of path and url"),
        ({"sha256": "a" * 64, "url": "file:///etc/passwd"}, "http or https"),
    ],
)
def test_a_source_that_pins_nothing_is_refused(options: Any, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        ManifestSource.of(options)


def test_a_digest_may_be_written_as_registries_write_it() -> None:
    assert ManifestSource.of({"sha256": "sha256:" + "A" * 64, "path": "/x"}).sha256 == "a" * 64


@pytest.fixture
def site() -> Iterator[str]:
    """A web server with the manifests, one that never ends its answer, and one that redirects for ever."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/flux.yaml":
                self._answer(200, written())
            elif self.path == "/moved":
                self._answer(302, b"", Location="/flux.yaml")
            elif self.path == "/loop":
                self._answer(302, b"", Location="/loop")
            elif self.path == "/large":
                self._answer(200, b"x" * 2**20)
            else:
                self._answer(404, b"secret text")

        def _answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/flux.yaml", "/moved"])
def test_manifests_are_fetched_from_a_mirror(site: str, path: str) -> None:
    assert read_manifests(pinned(written(), url=site + path)).crds


@pytest.mark.parametrize(
    ("path", "problem"), [("/none", "answers 404"), ("/loop", "cannot be fetched"), ("/large", "cannot be fetched .*more than")]
)
def test_a_mirror_that_does_not_have_them_is_reported_and_tried_again(
    site: str, path: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flux_manifests, "MAX_BYTES", 2**19)
    with pytest.raises(Unreachable, match=problem) as refused:
        read_manifests(pinned(b"", url=site.replace("//", "//robot:hunter2@") + path))
    assert refused.value.retryable and "hunter2" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeError, match=r"none\.yaml .* cannot be read: No such file"):
        read_manifests(pinned(b"", path=str(tmp_path / "none.yaml")))
