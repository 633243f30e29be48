"""The output of a command for its user: stages with a mark, a bar on a terminal, one sentence for an error that the user can fix."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import screen
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import heading, run_command, stage

TIMEOUT_SECONDS = 60
REPAINT = "\r\x1b[2K"
IMPORTS = "import signal, sys\nfrom ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError, run_command, stage\n"
HALF_DONE = """
with stage("Compile") as shown:
    shown.update(1, 2)
    sys.stdin.read()
"""


class Terminal:
    """The other end of a pty: what a program has painted on it so far."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""

    @property
    def text(self) -> str:
        return self._read.decode(errors="ignore")

    @property
    def paints(self) -> list[str]:
        """Each line that was painted over the one before."""
        return [line.removesuffix("\r\n") for line in self.text.split(REPAINT)[1:]]

    def read_until_painted(self, times: int) -> None:
        while len(self.paints) <= times:
            assert self._read_more(), self.text

    def read_to_the_end(self) -> None:
        while self._read_more():
            pass

    def _read_more(self) -> bool:
        assert select.select([self._descriptor], [], [], TIMEOUT_SECONDS)[0], f"nothing more is painted after {self.text!r}"
        try:
            more = os.read(self._descriptor, 65536)
        except OSError:  # the program has ended
            return False
        self._read += more
        return bool(more)


@contextmanager
def program_on_terminal(program: str, columns: int) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    """Run a Python program whose output is a terminal of this width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen([sys.executable, "-c", IMPORTS + program], stdin=subprocess.PIPE, stdout=its, env=environment) as process:
        os.close(its)
        try:
            yield process, Terminal(ours)
        finally:
            process.kill()
            os.close(ours)


def half_done_and_then_finished(columns: int) -> Terminal:
    """A stage that is painted a few times with its bar at one half, and then ends with success."""
    with program_on_terminal(HALF_DONE, columns) as (process, terminal):
        terminal.read_until_painted(2)
        assert process.stdin is not None
        process.stdin.close()
        terminal.read_to_the_end()
        assert process.wait(TIMEOUT_SECONDS) == 0
    return terminal


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", IMPORTS + program], capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)


def test_stage_is_one_plain_line_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with stage("Sources") as shown:
        shown.update(1, 2)
    with stage("Compile"):
        pass
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"✔ Sources +\d+\.\d s", first)
    assert re.fullmatch(r"✔ Compile +\d+\.\d s", second)


def test_stage_whose_body_raises_ends_with_a_cross(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="bad luck"), stage("Compile"):
        raise ValueError("bad luck")
    assert re.fullmatch(r"✘ Compile +\d+\.\d s\n", capsys.readouterr().out)


def test_interrupted_stage_ends_with_a_cross(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), stage("Compile"):
        raise KeyboardInterrupt
    assert capsys.readouterr().out.startswith("✘ Compile")


def test_note_stands_behind_the_title(capsys: pytest.CaptureFixture[str]) -> None:
    with stage("Hub") as shown:
        shown.note("etcd")
        shown.note("kube-apiserver")
    assert capsys.readouterr().out.startswith("✔ Hub: kube-apiserver ")


def test_long_stage_says_in_plain_lines_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    line_is_out = threading.Event()

    class Output(io.StringIO):
        def flush(self) -> None:
            line_is_out.set()

    output = Output()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(screen, "QUIET_SECONDS", 0)
    with stage("Compile") as shown:
        shown.update(1, 4)
        assert line_is_out.wait(TIMEOUT_SECONDS)
    printed = output.getvalue()
    assert printed.startswith("… Compile ")
    assert printed.splitlines()[0].endswith("]  25%")
    assert "\r" not in printed
    assert "\x1b" not in printed


def test_heading_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    heading("Demo")
    assert capsys.readouterr().out == "\nDemo\n"


def test_bar_is_shown_on_a_terminal() -> None:
    terminal = half_done_and_then_finished(columns=132)
    assert re.search(r"Compile .* s  \[█{12}░{12}\]  50%$", terminal.paints[-2]), terminal.paints


def test_finished_stage_is_one_line_without_a_bar_on_a_terminal() -> None:
    terminal = half_done_and_then_finished(columns=132)
    assert re.fullmatch(r"✔ Compile +\d+\.\d s", terminal.paints[-1]), terminal.paints
    assert terminal.text.count("\n") == 1


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_line_never_wraps_on_a_narrow_terminal(columns: int) -> None:
    assert max(map(len, half_done_and_then_finished(columns).paints)) < columns


def test_bar_is_shown_whole_on_a_terminal_of_usual_width() -> None:
    assert "50%" in half_done_and_then_finished(columns=80).paints[-2]


@pytest.mark.parametrize("code", [0, 3])
def test_exit_code_is_the_one_of_the_command(code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(lambda: code)
    assert ended.value.code == code


def test_user_error_is_its_sentence_on_stderr_and_exit_code_1() -> None:
    result = run_program("""
def main():
    with stage("Go toolchain"):
        raise UserError("Go is missing; install it.")
run_command(main)
""")
    assert result.returncode == 1
    assert result.stderr == "✘ Go is missing; install it.\n"
    assert result.stdout.startswith("✘ Go toolchain ")


def test_error_that_no_user_can_fix_keeps_its_traceback() -> None:
    result = run_program("run_command(lambda: 1 // 0)")
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "ZeroDivisionError" in result.stderr


def test_ctrl_c_is_exit_code_130_without_a_traceback() -> None:
    program = """
def main():
    # Where the tests run in the background of a shell, this signal is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with stage("Compile"):
        print("running", flush=True)
        signal.pause()
run_command(main)
"""
    command = [sys.executable, "-c", IMPORTS + program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            # The signal may come before the program pauses, which is no less an interruption.
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130
    assert output.startswith("✘ Compile ")
    assert errors.strip() == "✘ Interrupted."
