"""The gate for rulebooks, run as `make lint` runs it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.lint import Gate, failure, own, run

GOOD = """
- name: Reconcile every order
  hosts: localhost
  sources:
    - eda.builtin.range:
        limit: 1
  rules:
    - name: Reconcile
      condition: event.i is defined
      action:
        debug:
"""
BROKEN = {
    "a rule without an action": GOOD.replace("      action:\n        debug:\n", ""),
    "a word the schema does not know": GOOD.replace("condition:", "conditoin:"),
    "an empty file": "",
    "not YAML": "- name: [",
}


def check(folder: Path, *rulebooks: str) -> str | None:
    files = [folder / f"rulebook-{number}.yml" for number in range(len(rulebooks))]
    for file, text in zip(files, rulebooks, strict=True):
        file.write_text(text)
    return failure("rulebooks", partial(run, Gate("rulebooks", own("rulebooks", *map(str, files)))))


def test_good_rulebook_passes(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD) is None


def test_no_rulebook_at_all_passes(tmp_path: Path) -> None:
    assert check(tmp_path) is None


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_broken_rulebook_beside_a_good_one_is_refused_by_name(text: str, tmp_path: Path) -> None:
    output = check(tmp_path, GOOD, text)
    assert output is not None
    assert "rulebook-1.yml: " in output
    assert "rulebook-0.yml: " not in output
    assert "Traceback" not in output
