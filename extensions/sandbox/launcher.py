"""Start a program that cannot outlive its parent: the kernel kills it when the parent ends, however that happens.

A small program that replaces itself by the wanted one; doing the same between fork and exec would run Python code in a
half-copied process. Linux only, as the sandbox is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def die_with_me(command: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The command that starts `command` bound to the calling process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *(os.fspath(part) for part in command)]


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before the line above took effect.
    if os.getppid() == parent:
        os.execv(command[0], command)


if __name__ == "__main__":
    main()
