"""Where the sandbox's Kubernetes comes from: releases that are downloaded and verified, or compiled here where that does not work."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild, releases, transfers
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.extensions.sandbox.releases import Artifact, Release
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import Stage, UserError
from ansible_collections.openfleet.clusters.extensions.sandbox.transfers import NotDownloaded

from .release_server import (
    API_SERVER,
    CHECKSUMS,
    DRIP,
    DRIP_HEADERS,
    ETCD,
    ETCD_ARCHIVE,
    ETCD_NAME,
    HALF,
    HANG,
    Fault,
    ReleaseServer,
    archive,
    checksum,
    program,
    serving,
    sums,
)

NAMES = gobuild.KUBERNETES.names
RELEASED = {name: f"released {name}" for name in NAMES}
COMPILED = dict.fromkeys(NAMES, "compiled")
TIMEOUT_SECONDS = 60.0
SHORT_SECONDS = 0.3
# Instead of Go: it notes each call, and what it builds says that it was compiled.
GO = """#!/bin/sh
echo "$1" >> {calls}
case "$1" in
version) echo go version go1.99.0 ;;
build)
  while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\\necho compiled\\n' > "$2"
  chmod 755 "$2"
  ;;
esac
"""
ANOTHER_PROCESS = """
from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild, screen, transfers

gobuild.PROBE_SECONDS, transfers.SILENCE_SECONDS, screen.QUIET_SECONDS = 600, 600, 0
screen.run_command(lambda: print("made", gobuild.programs(gobuild.KUBERNETES)["kubectl"].parent, flush=True) or 0)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, on a machine with patience: only a test that is about a deadline reaches one."""
    for name in (
        "KUBEBUILDER_ASSETS",
        gobuild.WAY_SETTING,
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gobuild, "DISK_GIB", 0)
    for module, name in ((gobuild, "PROBE_SECONDS"), (gobuild, "PATIENT_PROBE_SECONDS"), (transfers, "SILENCE_SECONDS")):
        monkeypatch.setattr(module, name, TIMEOUT_SECONDS)
    monkeypatch.setattr(transfers, "RETRY_SECONDS", 0.0)
    return tmp_path / "cache" / "openfleet"


@pytest.fixture(autouse=True)
def go_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "bin" / "go"
    script.parent.mkdir()
    script.write_text(GO.format(calls=tmp_path / "go-calls"))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "go-calls"


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseServer]:
    with serving(ReleaseServer()) as server:
        use(server, monkeypatch)
        yield server


def use(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.KUBERNETES_SETTING, f"{server.url}/kubernetes")
    monkeypatch.setenv(releases.ETCD_SETTING, f"{server.url}/etcd/")


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda way: monkeypatch.setenv(gobuild.WAY_SETTING, way)


def reported() -> dict[str, str]:
    """What each of the programs says that the sandbox would start."""
    found = gobuild.programs(gobuild.KUBERNETES)
    return {name: subprocess.run([path], capture_output=True, text=True, check=True).stdout.strip() for name, path in found.items()}


def folders(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.is_dir()) if cache.exists() else []


def downloaded_folder(cache: Path) -> Path:
    return cache / f"kubernetes-v1.36.3-etcd-v3.6.8-linux-{platform.machine()}"


def partial(cache: Path, name: str, content: bytes) -> Path:
    """A file that a download was interrupted at."""
    file = Path(f"{downloaded_folder(cache)}.partial") / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("way", ["auto", "download", ""])
def test_reachable_release_is_downloaded_and_nothing_is_compiled(
    way: str, cache: Path, go_calls: Path, forced: Callable[[str], None]
) -> None:
    forced(way)
    assert reported() == RELEASED
    assert folders(cache) == [downloaded_folder(cache).name]
    assert sorted(path.name for path in downloaded_folder(cache).iterdir()) == sorted(NAMES)
    assert not go_calls.exists()


def test_what_is_in_the_cache_needs_no_network(server: ReleaseServer) -> None:
    assert reported() == RELEASED
    before = len(server.requests)
    assert reported() == RELEASED
    assert len(server.requests) == before


def test_what_is_in_the_cache_does_not_wait_for_another_build(cache: Path) -> None:
    assert reported() == RELEASED
    (lock,) = cache.glob("*.lock")
    lock.unlink()
    lock.mkdir()  # so that an attempt to take it is an error
    assert reported() == RELEASED


def test_what_was_compiled_before_is_used_without_a_request(server: ReleaseServer, forced: Callable[[str], None]) -> None:
    forced("compile")
    assert reported() == COMPILED
    forced("auto")
    assert reported() == COMPILED
    assert server.requests == []


def test_each_forced_way_has_a_folder_of_its_own(cache: Path, forced: Callable[[str], None]) -> None:
    for way, expected in (("download", RELEASED), ("compile", COMPILED), ("download", RELEASED), ("compile", COMPILED)):
        forced(way)
        assert reported() == expected
    assert len(folders(cache)) == 2


def test_forced_way_leaves_out_programs_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ReleaseServer) -> None:
    for name in NAMES:
        own = tmp_path / "own" / name
        own.parent.mkdir(exist_ok=True)
        own.write_text("#!/bin/sh\necho own\n")
        own.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "own"))
    assert reported() == dict.fromkeys(NAMES, "own")
    assert server.requests == []
    monkeypatch.setenv(gobuild.WAY_SETTING, "download")
    assert reported() == RELEASED


def test_unknown_way_is_refused(forced: Callable[[str], None]) -> None:
    forced("fetch")
    with pytest.raises(UserError, match=r"OPENFLEET_SANDBOX_BINARIES is 'fetch': set it to auto, download, compile, or leave it out\."):
        gobuild.programs(gobuild.KUBERNETES)


def test_bar_ends_with_the_size_of_all_files(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, int]] = []
    monkeypatch.setattr(Stage, "update", lambda _self, done, total: shown.append((done, total)))
    gobuild.programs(gobuild.KUBERNETES)
    whole = sum(len(content) for path, content in server.files.items() if not path.endswith(CHECKSUMS))
    assert max(shown) == (whole, whole)
    assert {total for _done, total in shown} == {whole}


def wrong_checksum(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[f"{API_SERVER}.sha256"] = checksum(b"another file").encode()


def wrong_archive_checksum(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[f"{ETCD}/SHA256SUMS"] = sums(b"another file")


def changed_file(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[API_SERVER] = server.files[API_SERVER].replace(b"released", b"replaced")


def truncated(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.resumes = False
    server.faults[API_SERVER] = Fault(HALF)


def no_file(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    del server.files[ETCD_ARCHIVE]


def no_release(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files.clear()


def broken_server(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults[API_SERVER] = Fault(503)


def page_of_a_portal(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files |= dict.fromkeys(server.files, b"<html>Please log in to this network.</html>")


def other_files_only(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[f"{ETCD}/SHA256SUMS"] = sums(b"").replace(b"linux", b"plan9")


def archive_without_etcd(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[ETCD_ARCHIVE] = archive({f"{ETCD_NAME}/etcdctl": b"", "../etcd": b"outside"})
    server.files[f"{ETCD}/SHA256SUMS"] = sums(server.files[ETCD_ARCHIVE])


def no_archive(server: ReleaseServer, _monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[ETCD_ARCHIVE] = b"no archive"
    server.files[f"{ETCD}/SHA256SUMS"] = sums(b"no archive")


def hanging_probe(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults[f"{ETCD}/SHA256SUMS"] = Fault(HANG)
    for name in ("PROBE_SECONDS", "PATIENT_PROBE_SECONDS"):
        monkeypatch.setattr(gobuild, name, SHORT_SECONDS)


def dripping_headers(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging_probe(server, monkeypatch)
    server.faults[f"{ETCD}/SHA256SUMS"] = Fault(DRIP_HEADERS)


def dripping_file(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults[API_SERVER] = Fault(DRIP)
    monkeypatch.setattr(releases, "DOWNLOAD_SECONDS", SHORT_SECONDS)


def hanging_file(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults[API_SERVER] = Fault(HANG)
    monkeypatch.setattr(transfers, "SILENCE_SECONDS", SHORT_SECONDS)


def hanging_name_lookup(_server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_arguments, **_options: time.sleep(TIMEOUT_SECONDS))
    for name in ("PROBE_SECONDS", "PATIENT_PROBE_SECONDS"):
        monkeypatch.setattr(gobuild, name, SHORT_SECONDS)


def unknown_host(_server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.KUBERNETES_SETTING, "http://releases.invalid")


def closed_port(_server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.ETCD_SETTING, "http://127.0.0.1:9")


def local_files(_server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.ETCD_SETTING, "file:///etc")


def other_processor(_server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "mips64")


FAILURES = [
    pytest.param(wrong_checksum, "kube-apiserver does not match its published checksum"),
    pytest.param(wrong_archive_checksum, "tar.gz does not match its published checksum"),
    pytest.param(changed_file, "kube-apiserver does not match its published checksum"),
    pytest.param(truncated, r"the connection ended after \d+ of \d+ bytes"),
    pytest.param(no_file, "tar.gz answers 404 Not Found"),
    pytest.param(no_release, "answers 404 Not Found"),
    pytest.param(broken_server, "kube-apiserver answers 503 Service Unavailable"),
    pytest.param(page_of_a_portal, "has no SHA-256 checksum of kube"),
    pytest.param(other_files_only, "SHA256SUMS has no SHA-256 checksum of etcd"),
    pytest.param(archive_without_etcd, "/etcd cannot be read from .*not found"),
    pytest.param(no_archive, "/etcd cannot be read from "),
    pytest.param(hanging_probe, "127.0.0.1:.* did not complete the transfer within 0.3 seconds"),
    pytest.param(dripping_headers, "did not complete the transfer within 0.3 seconds"),
    pytest.param(dripping_file, "did not complete the transfer within 0.3 seconds"),
    pytest.param(hanging_file, "127.0.0.1:.*timed out"),
    pytest.param(hanging_name_lookup, "did not complete the transfer within 0.3 seconds"),
    pytest.param(unknown_host, "releases.invalid: "),
    pytest.param(closed_port, "127.0.0.1:9: Connection refused"),
    pytest.param(local_files, "begins neither with https:// nor with http://"),
    pytest.param(other_processor, "there is no release for the processor mips64"),
]
Failure = Callable[[ReleaseServer, pytest.MonkeyPatch], None]


@pytest.mark.parametrize(("fail", "reason"), FAILURES)
def test_release_that_cannot_be_downloaded_is_compiled_and_one_line_says_why(
    fail: Failure, reason: str, cache: Path, server: ReleaseServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(server, monkeypatch)
    assert reported() == COMPILED
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("!")]
    assert len(lines) == 1
    assert re.fullmatch(rf"! Kubernetes v1\.36\.3 is compiled, because its release cannot be downloaded: .*{reason}.*\.", lines[0]), lines
    assert len(folders(cache)) == 1


@pytest.mark.parametrize(("fail", "reason"), FAILURES)
def test_forced_download_that_fails_is_an_error_and_nothing_is_compiled_or_used(
    fail: Failure, reason: str, cache: Path, server: ReleaseServer, go_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(server, monkeypatch)
    monkeypatch.setenv(gobuild.WAY_SETTING, "download")
    with pytest.raises(UserError, match=reason) as refusal:
        gobuild.programs(gobuild.KUBERNETES)
    assert str(refusal.value).startswith("Kubernetes v1.36.3 cannot be downloaded: ")
    assert str(refusal.value).endswith("or set OPENFLEET_SANDBOX_BINARIES=compile.")
    assert "\n" not in str(refusal.value)
    assert not [name for name in folders(cache) if not name.endswith(".partial")]
    assert not go_calls.exists()


def test_broken_connection_is_resumed_where_it_ended(server: ReleaseServer) -> None:
    server.faults[API_SERVER] = Fault(HALF, times=1)
    assert reported() == RELEASED
    assert server.asked_for(API_SERVER) == ["", f"bytes={len(server.files[API_SERVER]) // 2}-"]


def test_error_of_the_server_that_passes_is_tried_again(server: ReleaseServer) -> None:
    server.faults[API_SERVER] = Fault(503, times=2)
    assert reported() == RELEASED


def test_next_command_resumes_what_a_forced_download_left(
    cache: Path, server: ReleaseServer, forced: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    forced("download")
    monkeypatch.setattr(transfers, "ATTEMPTS", 1)
    server.faults[API_SERVER] = Fault(HALF, times=1)
    with pytest.raises(UserError, match="the connection ended"):
        gobuild.programs(gobuild.KUBERNETES)
    assert folders(cache) == [f"{downloaded_folder(cache).name}.partial"]
    server.requests.clear()
    assert reported() == RELEASED
    assert server.asked_for(API_SERVER) == [f"bytes={len(server.files[API_SERVER]) // 2}-"]
    assert folders(cache) == [downloaded_folder(cache).name]


def test_file_that_is_whole_is_not_downloaded_again(cache: Path, server: ReleaseServer) -> None:
    partial(cache, "kubectl", program("kubectl"))
    assert reported() == RELEASED
    assert not server.asked_for(API_SERVER.replace("kube-apiserver", "kubectl"))


@pytest.mark.parametrize(
    ("content", "resumes", "ranges"),
    [
        pytest.param(b"something else", True, ["bytes=14-", ""], id="another file's part"),
        pytest.param(
            program("kube-apiserver") + b"more", True, [f"bytes={len(program('kube-apiserver')) + 4}-", ""], id="longer than the file"
        ),
        pytest.param(program("kube-apiserver")[:100], False, ["bytes=100-"], id="the server does not resume"),
    ],
)
def test_part_that_does_not_fit_is_discarded(content: bytes, resumes: bool, ranges: list[str], cache: Path, server: ReleaseServer) -> None:
    partial(cache, "kube-apiserver", content)
    server.resumes = resumes
    assert reported() == RELEASED
    assert server.asked_for(API_SERVER) == ranges


def test_two_processes_download_once(server: ReleaseServer, cache: Path) -> None:
    server.gate.clear()
    command = [sys.executable, "-c", ANOTHER_PROCESS]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as first,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as second,
    ):
        try:
            assert first.stdout is not None and second.stdout is not None
            lines = [first.stdout.readline(), second.stdout.readline()]
            server.gate.set()
            outputs = [process.communicate(timeout=TIMEOUT_SECONDS)[0] for process in (first, second)]
        finally:
            first.kill()
            second.kill()
    assert sum("Waiting for the same build of another process" in line for line in lines) == 1, lines
    assert [output.splitlines()[-1] for output in outputs] == [f"made {downloaded_folder(cache)}"] * 2
    assert server.asked_for(API_SERVER) == [""]


def test_interrupted_download_ends_at_once_and_is_not_used(server: ReleaseServer, cache: Path) -> None:
    server.faults[API_SERVER] = Fault(HANG)
    with subprocess.Popen([sys.executable, "-c", ANOTHER_PROCESS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            assert "download" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=TIMEOUT_SECONDS)[0]
        finally:
            process.kill()
    assert process.returncode == 130, output
    assert not downloaded_folder(cache).exists()
    server.faults.clear()
    assert reported() == RELEASED


def test_proxy_of_the_environment_is_used(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv(releases.KUBERNETES_SETTING, "http://releases.invalid/kubernetes")
    monkeypatch.setenv(releases.ETCD_SETTING, "http://releases.invalid/etcd")
    assert reported() == RELEASED


def redirect_all(old: ReleaseServer, new: ReleaseServer) -> None:
    old.redirects = {path: f"{new.url}{path}" for path in new.files}


def test_redirect_is_followed(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ReleaseServer()) as first:
        redirect_all(first, server)
        use(first, monkeypatch)
        assert reported() == RELEASED


@pytest.fixture
def tls_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseServer]:
    authority = Authority("authority of releases")
    (tmp_path / "authority.pem").write_bytes(authority.pem)
    (tmp_path / "server.pem").write_bytes(b"".join(authority.server("releases", ["127.0.0.1"])))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    server = ReleaseServer()
    server.use_tls(str(tmp_path / "server.pem"))
    with serving(server):
        use(server, monkeypatch)
        yield server


@pytest.mark.usefixtures("tls_server")
def test_release_is_downloaded_with_tls() -> None:
    assert reported() == RELEASED


@pytest.mark.usefixtures("tls_server")
def test_server_of_an_unknown_authority_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert reported() == COMPILED
    assert "certificate verify failed" in capsys.readouterr().out


def test_redirect_that_leaves_tls_is_refused(server: ReleaseServer, tls_server: ReleaseServer, capsys: pytest.CaptureFixture[str]) -> None:
    redirect_all(tls_server, server)
    assert reported() == COMPILED
    assert "is refused, because it leaves TLS" in capsys.readouterr().out
    assert server.requests == []


HEX, OTHER = "a1" * 32, "b2" * 32
ETCD_FILE = Artifact("etcd", f"https://etcd.example/{ETCD_NAME}.tar.gz", "https://etcd.example/SHA256SUMS")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEX, id="alone"),
        pytest.param(f"{HEX}\n", id="alone on a line"),
        pytest.param(HEX.upper(), id="upper case"),
        pytest.param(f"{OTHER}  other.tar.gz\n{HEX}  {ETCD_NAME}.tar.gz\n", id="with its name"),
        pytest.param(f"{HEX} *{ETCD_NAME}.tar.gz\r\n", id="of a binary file"),
    ],
)
def test_published_checksum_is_found(text: str) -> None:
    assert releases.checksum_in(text, ETCD_FILE) == HEX


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("\n\n", id="empty lines"),
        pytest.param(f"{HEX}  other.tar.gz", id="of another file"),
        pytest.param(f"{HEX}  old-{ETCD_NAME}.tar.gz", id="of a file whose name ends alike"),
        pytest.param(HEX[:-1], id="too short"),
        pytest.param(HEX * 2, id="of another algorithm"),
        pytest.param("zz" * 32, id="no number"),
    ],
)
def test_text_without_the_checksum_is_refused(text: str) -> None:
    with pytest.raises(NotDownloaded, match="has no SHA-256 checksum"):
        releases.checksum_in(text, ETCD_FILE)


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_addresses_are_those_of_the_projects(machine: str, architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(releases.KUBERNETES_SETTING)
    monkeypatch.delenv(releases.ETCD_SETTING)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    found = {artifact.program: (artifact.url, artifact.checksum_url) for artifact in Release("v1.2.3", "v4.5.6").artifacts()}
    kubernetes = f"https://dl.k8s.io/release/v1.2.3/bin/linux/{architecture}"
    etcd = "https://github.com/etcd-io/etcd/releases/download/v4.5.6"
    assert found == {
        "etcd": (f"{etcd}/etcd-v4.5.6-linux-{architecture}.tar.gz", f"{etcd}/SHA256SUMS"),
        **{name: (f"{kubernetes}/{name}", f"{kubernetes}/{name}.sha256") for name in NAMES if name != "etcd"},
    }


def test_release_has_the_versions_that_are_compiled() -> None:
    required = dict(re.findall(r"^\t(\S+) (v\S+)$", (gobuild.KUBERNETES.sources / "go.mod").read_text(), re.MULTILINE))
    assert gobuild.KUBERNETES.release == Release(required["k8s.io/kubernetes"], required["go.etcd.io/etcd/server/v3"])
