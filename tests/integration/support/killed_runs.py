"""Runs whose process is killed in the middle of a task, for each of many moments: the worker lives on, as Ansible's workers do.

A program of its own, started by a test: it forks a run for each moment, and the run forks the worker that does the task. The worker counts
the lines that it executes, of the action and of everything below it, and kills the run at the line that the moment says. The program
adopts what a killed run leaves behind, and reports when all of it has ended.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import Renewer

from . import in_process

PR_SET_CHILD_SUBREAPER = 36
END_SECONDS = 60
# Lines of these parts of the library count as moments.
PARTS = ("/plugins/action/", "/module_utils/lock/", "/module_utils/orders/prepare.py", "/module_utils/kube/client.py")


class Moments:
    """Counts lines, and calls `reach` at the line with the number `at`."""

    def __init__(self, at: int, reach: Callable[[], None]) -> None:
        self.count = 0
        self._at, self._reach = at, reach

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if not any(part in frame.f_code.co_filename for part in PARTS):
            return None
        if event == "line":
            self.count += 1
            if self.count == self._at:
                self._reach()
        return self.trace


def kill_parent() -> None:
    parent = os.getppid()
    os.kill(parent, signal.SIGKILL)
    while os.getppid() == parent:
        time.sleep(0.001)


def work(module: str, arguments: dict[str, Any], at: int, lines: int) -> None:
    moments = Moments(at, kill_parent)
    sys.settrace(moments.trace)
    try:
        in_process.act(module, arguments)
    finally:
        sys.settrace(None)
        os.write(lines, f"{moments.count} ".encode())


def run(module: str, arguments: dict[str, Any], at: int) -> tuple[int, float]:
    """Have a run do the task, and return how many lines that took and when the run ended."""
    lines, written = os.pipe()
    process = os.fork()
    if not process:
        worker = multiprocessing.get_context("fork").Process(target=work, args=(module, arguments, at, written))
        worker.start()
        worker.join()
        os._exit(0)
    os.waitpid(process, 0)
    died = time.time()
    os.close(written)
    with os.fdopen(lines) as pipe:
        return int(pipe.read() or 0), died


def main() -> None:
    """Read the task, the arguments that differ from run to run, and the moments, as shares of all lines of the task."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    in_process.cluster_order_prepare.Renewer = Renewer
    given = json.load(sys.stdin)
    module, arguments, names = given["module"], given["arguments"], given["names"]
    lines, ended = run(module, arguments | {"name": names[0]}, 0)
    deaths = [ended]
    for name, share in zip(names[1:], given["moments"], strict=True):
        deaths.append(run(module, arguments | {"name": name}, 1 + int(share * lines))[1])
    signal.alarm(END_SECONDS)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        print(json.dumps({"lines": lines, "deaths": deaths}))


if __name__ == "__main__":
    main()
