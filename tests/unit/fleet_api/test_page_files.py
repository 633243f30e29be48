"""The files of the fleet page: nothing in them makes markup or code of a string, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.routes.page import FILES, TAGS

FOLDER = Path(__file__).resolve().parents[3] / "extensions/fleet_api/page"
SCRIPTS = sorted(FOLDER.rglob("*.js"))
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML|\beval\b|new Function"
    r"|setTimeout\([\"'`]|javascript:|\.on[a-z]+ ="
)


def test_every_file_is_served() -> None:
    assert {*FILES} == {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*") if file.is_file()}
    assert len({*TAGS.values()}) == len(FILES)


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_script_makes_no_markup_or_code_of_a_string(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not DANGEROUS.findall(text)
    assert text.startswith("// "), "its first line says what it is"
    for name in re.findall(r"""(?:from|import\()\s*"([^"]+)\"""", text):
        assert name.startswith("."), f"{name} is loaded from elsewhere"
        assert (file.parent / name).is_file(), name


def test_html_has_no_script_or_style_of_its_own() -> None:
    text = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<script>|<style|\sstyle=|\son[a-z]+=|https?:", text)
    for name in re.findall(r"""(?:src|href)="(page/[^"]+)\"""", text):
        assert name.removeprefix("page/") in FILES
    assert not re.findall(r"url\(|@import", (FOLDER / "style.css").read_text(encoding="utf-8"))
