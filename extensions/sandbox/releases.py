"""The binaries that Kubernetes and etcd release: where they are, their published checksums, and how to have them in a folder.

It does not choose between downloading and compiling; `gobuild` does.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .screen import Stage, stage
from .transfers import NotDownloaded, have_file, read_text, within

KUBERNETES_SETTING, KUBERNETES_URL = "OPENFLEET_SANDBOX_KUBERNETES_URL", "https://dl.k8s.io/release"
ETCD_SETTING, ETCD_URL = "OPENFLEET_SANDBOX_ETCD_URL", "https://github.com/etcd-io/etcd/releases/download"
# As uname names a processor, and as both projects name it in their releases.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
# A download that takes longer is slower than compiling.
DOWNLOAD_SECONDS = 600.0
SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Artifact:
    """One file of a release, and the file that has its SHA-256 checksum. `member` is the program's path in an archive."""

    program: str
    url: str
    checksum_url: str
    member: str = ""

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Release:
    """The versions that belong together, for the processor of this machine."""

    kubernetes: str
    etcd: str

    @property
    def name(self) -> str:
        return f"{self.kubernetes}-etcd-{self.etcd}-linux-{platform.machine()}"

    def artifacts(self) -> list[Artifact]:
        architecture = ARCHITECTURES.get(platform.machine())
        if architecture is None:
            raise NotDownloaded(f"there is no release for the processor {platform.machine()}")
        kubernetes = f"{_base(KUBERNETES_SETTING, KUBERNETES_URL)}/{self.kubernetes}/bin/linux/{architecture}"
        programs = ("kube-apiserver", "kube-controller-manager", "kubectl")
        etcd, archive = f"{_base(ETCD_SETTING, ETCD_URL)}/{self.etcd}", f"etcd-{self.etcd}-linux-{architecture}"
        return [
            *(Artifact(program, f"{kubernetes}/{program}", f"{kubernetes}/{program}.sha256") for program in programs),
            Artifact("etcd", f"{etcd}/{archive}.tar.gz", f"{etcd}/SHA256SUMS", f"{archive}/etcd"),
        ]


def _base(setting: str, default: str) -> str:
    return (os.environ.get(setting) or default).rstrip("/")


def fetch(release: Release, title: str, folder: Path, probe_seconds: float) -> None:
    """Have the verified programs in the folder, which appears with all of them or not at all.

    The published checksums come first: where they do not arrive within the seconds of the probe, nothing is downloaded. A download
    that fails leaves a folder beside it, from which the next call resumes.
    """
    checksums = _checksums(release.artifacts(), probe_seconds)
    with stage(f"{title}: download (the first time on this machine)") as shown:
        made = partial_folder(folder)
        made.mkdir(parents=True, exist_ok=True)
        _download(checksums, made, shown)
        made.rename(folder)


def partial_folder(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.partial")


def _checksums(artifacts: list[Artifact], seconds: float) -> dict[Artifact, str]:
    texts = within(seconds, {url: partial(read_text, url) for url in {artifact.checksum_url for artifact in artifacts}})
    return {artifact: checksum_in(texts[artifact.checksum_url], artifact) for artifact in artifacts}


def checksum_in(text: str, artifact: Artifact) -> str:
    """The checksum of a file: alone on a line, or before the file's name."""
    for words in map(str.split, text.splitlines()):
        if SHA256.fullmatch("".join(words[:1])) and words[1:] in ([], [artifact.file_name], [f"*{artifact.file_name}"]):
            return words[0].lower()
    raise NotDownloaded(f"{artifact.checksum_url} has no SHA-256 checksum of {artifact.file_name}")


def _download(checksums: Mapping[Artifact, str], folder: Path, shown: Stage) -> None:
    progress = _Progress(shown, checksums)
    transfers = {
        artifact.url: partial(have_file, artifact.url, folder / artifact.file_name, checksum, partial(progress.update, artifact))
        for artifact, checksum in checksums.items()
    }
    within(DOWNLOAD_SECONDS, transfers)
    for artifact in checksums:
        if artifact.member:
            _extract(artifact, folder)
        (folder / artifact.program).chmod(0o755)


class _Progress:
    """The bytes of all files on one bar, which starts once the size of each is known."""

    def __init__(self, shown: Stage, artifacts: Iterable[Artifact]) -> None:
        self._shown = shown
        self._files: dict[Artifact, tuple[int, int]] = dict.fromkeys(artifacts, (0, 0))

    def update(self, artifact: Artifact, done: int, total: int) -> None:
        self._files[artifact] = (done, total)
        files = list(self._files.values())
        if all(total for _done, total in files):
            self._shown.update(sum(done for done, _total in files), sum(total for _done, total in files))


def _extract(artifact: Artifact, folder: Path) -> None:
    """Write the program alone: no other path of the archive is created."""
    archive = folder / artifact.file_name
    try:
        with tarfile.open(archive, "r:gz") as files, open(folder / artifact.program, "wb") as program:
            content = files.extractfile(artifact.member)
            if content is None:
                raise KeyError("it is not a file")
            shutil.copyfileobj(content, program)
    except (KeyError, EOFError, OSError, tarfile.TarError, zlib.error) as error:
        raise NotDownloaded(f"{artifact.member} cannot be read from {artifact.url} ({error})") from error
    archive.unlink()
