"""What CI runs: both commands even if the first fails, exit code 1 if one does, the count of tests as the last line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[3] / ".ci" / "run"
CLOSING = "===== 7 passed, 1 skipped in 62.50s (0:01:02) ====="


@pytest.mark.parametrize(
    ("lint", "test", "output", "code", "last"),
    [
        pytest.param(0, 0, CLOSING, 0, CLOSING, id="both pass"),
        pytest.param(2, 0, CLOSING, 1, CLOSING, id="a gate failed"),
        pytest.param(0, 2, CLOSING, 1, CLOSING, id="a test failed"),
        pytest.param(0, 2, "the build failed", 1, "No test ran.", id="no test ran"),
    ],
)
def test_exit_code_and_last_line(lint: int, test: int, output: str, code: int, last: str, tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\necho "make $1"\n[ "$1" = lint ] && exit {lint}\necho "{output}"\necho "make: the end" >&2\nexit {test}\n')
    make.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run([RUN], env=environment, capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    assert lines[:2] == ["make lint", "make test"]
    assert lines[-1] == last
    assert result.returncode == code
