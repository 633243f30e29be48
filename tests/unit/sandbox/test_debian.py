"""Programs of Debian packages: those of the machine, or unpacked in the cache by apt, here by a stand-in for apt and dpkg."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import debian
from ansible_collections.openfleet.clusters.extensions.sandbox.debian import DebianProgram

NAME = "openfleet-test-program"
APT = """#!/bin/sh
echo "$*" >> "$APT_LOG"
for word; do case "$word" in Dir::Cache=*) folder="${word#Dir::Cache=}";; esac; done
case "$2" in install) [ -n "$APT_FAILS" ] && exit 100; touch "$folder/archives/one.deb";; esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/sbin" "$3/usr/lib/here"
touch "$3/usr/lib/here/libone.so.1"
printf '#!/bin/sh\\n' > "$3/usr/sbin/openfleet-test-program"
chmod +x "$3/usr/sbin/openfleet-test-program"
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose cache is empty and which has our apt and dpkg."""
    (tmp_path / "bin").mkdir()
    for name, text in {"apt-get": APT, "dpkg-deb": DPKG}.items():
        (tmp_path / "bin" / name).write_text(text, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("APT_LOG", str(tmp_path / "log"))
    debian.find.cache_clear()
    return tmp_path


def find() -> debian.Unpacked | None:
    return debian.find(DebianProgram(NAME, "one"))


def test_a_package_is_unpacked_once_into_the_cache_with_its_libraries(machine: Path) -> None:
    found = find()
    folder = machine / "cache" / "openfleet" / "debian-one"
    assert found == debian.Unpacked(folder / "usr/sbin" / NAME, {"LD_LIBRARY_PATH": str(folder / "usr/lib/here")})
    log = (machine / "log").read_text(encoding="utf-8")
    assert log.count("--download-only") == 1 and "Debug::NoLocking=1" in log
    debian.find.cache_clear()
    assert find() == found and (machine / "log").read_text(encoding="utf-8") == log
    assert sorted(path.name for path in folder.parent.iterdir()) == ["debian-one", "debian-one.lock"]


def test_the_program_of_the_machine_is_used(machine: Path) -> None:
    own = machine / "bin" / NAME
    own.write_text("", encoding="utf-8")
    own.chmod(0o755)
    assert find() == debian.Unpacked(own, {}) and not (machine / "log").exists()


def test_a_package_that_cannot_be_downloaded_leaves_nothing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APT_FAILS", "1")
    assert find() is None
    assert [path.name for path in (machine / "cache" / "openfleet").iterdir()] == ["debian-one.lock"]


def test_a_machine_without_apt_has_none(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "bin" / "apt-get").unlink()
    monkeypatch.setenv("PATH", str(machine / "bin"))
    assert find() is None and not (machine / "log").exists()
