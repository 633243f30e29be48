# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs ansible-rulebook for a service manager. All arguments are the engine's; it decides nothing about orders.

The engine may end with exit code 0 when it can work no longer: a variable in an action was not defined, or a source has returned. And its
playbook runs are in sessions of their own, so they outlive it. This program ends with 0 only if it was asked to end, by SIGTERM or SIGINT,
and never before the last process below it: what the engine leaves behind has a while to end, then it is killed.

It is a file that is run by its path, because a collection has no other way to bring a program. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

ENGINE = "ansible-rulebook"
ENDINGS = (signal.SIGTERM, signal.SIGINT)
GRACE_SECONDS = 60  # a run needs less; the supervisor of this program must wait for longer
PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """The engine and all that it starts. Signals arrive while it waits for a child, and it waits until it has none."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # What loses its parent becomes our child, not that of the machine's first process.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # The engine calls ansible-galaxy and ansible-playbook by name: those of the environment that this program runs
        # in are meant.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        program = shutil.which(ENGINE, path=path)
        if program is None:
            raise FileNotFoundError(f"there is no {ENGINE} beside {sys.executable} or on the PATH: install it there")
        self._asked = False
        self._code: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # until it is known whom to pass them on to
        # In a session of its own: Ctrl-C at a terminal is for us alone, and the engine hears of it once.
        self._engine = os.posix_spawn(program, [ENGINE, *arguments], os.environ | {"PATH": path}, setsid=True, setsigmask=())
        for number in ENDINGS:
            signal.signal(number, self._pass_on)
        signal.signal(signal.SIGALRM, self._kill)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

    def run(self) -> int:
        """Wait until every process has ended, and return the exit code."""
        while True:
            try:
                child, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return 0 if self._asked else self._code or 1
            if child == self._engine:
                self._ended(os.waitstatus_to_exitcode(status))

    def _ended(self, code: int) -> None:
        self._code = 128 - code if code < 0 else code
        if not self._asked:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            say(f"{ENGINE} {how} unexpectedly; its last lines are above")
            signal.alarm(GRACE_SECONDS)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if not self._asked:
            self._asked = True
            signal.alarm(GRACE_SECONDS)
        if self._code is None:
            os.kill(self._engine, number)

    def _kill(self, _number: int, _frame: FrameType | None) -> None:
        """End what took too long, and again a second later what it has started meanwhile."""
        left = descendants(os.getpid())
        say(f"killing what is left after {GRACE_SECONDS} s: {len(left)} processes")
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        signal.alarm(1)


def descendants(ancestor: int) -> list[int]:
    """All processes below a process."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            # Behind the name in brackets are its state and its parent.
            parent = int(file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(file.parent.name))
    found = list(children.get(ancestor, []))
    for process in found:
        found += children.get(process, [])
    return found


def say(text: str) -> None:
    print(f"{Path(__file__).name}: {text}.", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    try:
        supervisor = Supervisor(arguments)
    except OSError as error:
        say(str(error))
        return 1
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
