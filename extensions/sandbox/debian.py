"""Programs of Debian packages in the user's cache, for machines with apt: downloaded and unpacked, not installed, so without root.

Only tests use them. Where a program is on PATH it is used, and a machine with neither has none.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .gobuild import cache_folder, only_one
from .screen import stage

APT_SECONDS = 600
TOOLS = ("apt-get", "dpkg-deb")


@dataclass(frozen=True)
class DebianProgram:
    """A program, and the package that contains it. `path` is its folder there, where the one for PATH has a script with fixed paths."""

    name: str
    package: str
    path: str = ""


KNOT = DebianProgram("knotd", "knot")
CHROMIUM = DebianProgram("chromium-headless-shell", "chromium-headless-shell", "usr/lib/chromium")
GIT = DebianProgram("git", "git")


@dataclass(frozen=True)
class Unpacked:
    """A program, and the environment that it finds its libraries in."""

    path: Path
    environment: dict[str, str]


@functools.cache
def find(program: DebianProgram) -> Unpacked | None:
    """The program of this machine, or the unpacked one; downloaded where neither is there. None where that is not possible."""
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    if own := shutil.which(program.name, path=search):
        return Unpacked(Path(own), {})
    folder = cache_folder() / f"debian-{program.package}"
    if not folder.exists() and all(map(shutil.which, TOOLS)):
        with only_one(folder.with_suffix(".lock")):
            if not folder.exists():
                _unpack(program, folder)
    return _in(folder, program)


def _in(folder: Path, program: DebianProgram) -> Unpacked | None:
    paths = (program.path,) if program.path else ("usr/sbin", "usr/bin")
    found = shutil.which(program.name, path=os.pathsep.join(str(folder / path) for path in paths))
    libraries = sorted({str(path.parent) for path in folder.rglob("*.so*")})
    return Unpacked(Path(found), {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}) if found else None


def _unpack(program: DebianProgram, folder: Path) -> None:
    """Download the package, and those that it needs and the machine lacks. The folder appears with all of them or not at all."""
    made = folder.with_suffix(".partial")
    shutil.rmtree(made, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial", "files"):
        (made / name).mkdir(parents=True)
    # The machine's own sources and list of installed packages, with folders of our own for everything that apt writes.
    settings = {"Dir::State::lists": made / "lists", "Dir::Cache": made / "cache", "Debug::NoLocking": "1", "APT::Sandbox::User": ""}
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    with stage(f"{program.package} (a Debian package, for tests)"):
        _apt("update", options)
        _apt("install", [*options, "--download-only", "--no-install-recommends", "--yes", program.package])
        for package in sorted((made / "cache" / "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(made / "files")], capture_output=True, check=False)
    if _in(made / "files", program):
        (made / "files").rename(folder)
    shutil.rmtree(made)


def _apt(command: str, options: list[str]) -> None:
    """A failure shows as a missing program, of which the tests that need it report how to install it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["apt-get", "-q", command, *options], capture_output=True, timeout=APT_SECONDS, check=False)
