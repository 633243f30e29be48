"""Progress on the terminal: one line per stage with its time, and a bar where the end is known.

Written by hand because it runs before any package is installed. Where the output is not a terminal it prints plain lines.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

BAR_WIDTH = 24
TITLE_WIDTH = 62
QUIET_SECONDS = 30
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class UserError(Exception):
    """An error that the user can fix; its text is one sentence: what is missing, and what to do."""


class Stage:
    """One piece of work on the screen. `update` moves its bar, `note` changes the text after its title, `say` adds a line."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.detail = ""
        self._done = 0
        self._total = 0
        self._started = time.monotonic()
        self._printed = self._started
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._paint, daemon=True)
        self._live = sys.stdout.isatty()
        self._painter.start()

    def update(self, done: int, total: int) -> None:
        self._done, self._total = done, total

    def note(self, detail: str) -> None:
        self.detail = detail

    def say(self, line: str) -> None:
        """A line of its own, above this one."""
        self._write(line, final=True)

    def finish(self, mark: str) -> None:
        self._over.set()
        self._painter.join()
        self._write(f"{mark} {self._text()}", final=True)

    def _text(self) -> str:
        """Title, time and bar; on a narrow terminal it is the title that is cut."""
        title = f"{self.title}: {self.detail}" if self.detail else self.title
        rest = f" {time.monotonic() - self._started:7.1f} s{'' if self._over.is_set() else self._bar()}"
        if self._live:
            width = min(TITLE_WIDTH, shutil.get_terminal_size().columns - len(rest) - 3)
            title = title[: max(width, 0)] if not self._over.is_set() else title
            return f"{title:<{max(width, 0)}}{rest}"
        return f"{title:<{TITLE_WIDTH}}{rest}"

    def _bar(self) -> str:
        if not self._total:
            return ""
        share = min(self._done / self._total, 1.0)
        filled = int(share * BAR_WIDTH)
        return f"  [{'█' * filled}{'░' * (BAR_WIDTH - filled)}] {share:4.0%}"

    def _paint(self) -> None:
        turn = 0
        while not self._over.wait(0.2 if self._live else 1.0):
            turn += 1
            if self._live:
                self._write(f"{SPINNER[turn % len(SPINNER)]} {self._text()}")
            elif time.monotonic() - self._printed > QUIET_SECONDS:
                self._printed = time.monotonic()
                self._write(f"… {self._text()}", final=True)

    def _write(self, line: str, final: bool = False) -> None:
        if self._live:
            line = line[: shutil.get_terminal_size().columns - 1]
            sys.stdout.write(f"\r\x1b[2K{line}{chr(10) if final else ''}")
        else:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextlib.contextmanager
def stage(title: str) -> Iterator[Stage]:
    """Show `title` while the body runs; it ends with ✔, or with ✘ when the body raises."""
    shown = Stage(title)
    try:
        yield shown
    except BaseException:
        shown.finish("✘")
        raise
    shown.finish("✔")


def heading(text: str) -> None:
    print(f"\n{text}", flush=True)


def warning(text: str) -> None:
    print(f"! {text}", flush=True)


def run_command(main: Callable[[], int]) -> NoReturn:
    """Run a command line: a `UserError` becomes its sentence on stderr and exit code 1, Ctrl-C exit code 130."""
    try:
        sys.exit(main())
    except UserError as error:
        print(f"✘ {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\n✘ Interrupted.", file=sys.stderr)
        sys.exit(130)
