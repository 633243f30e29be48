"""A Sphinx extension that fits the pages of antsibull-docs into furo: no list of headings on a page, short names in the navigation."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# An entry of a toctree, alone on its line: `    cluster_info_module`.
ENTRY = re.compile(r"^( +)(\w+)_(module|inventory|lookup|role)$", re.MULTILINE)


class NoContents(SphinxDirective):
    """Nothing. furo lists the headings of a page beside it, and shows an error where the page has such a list too."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return []


def shorten_entries(_app: Sphinx, _page: str, content: list[str]) -> None:
    """Name the entries of the navigation: their titles are too long for it."""
    content[0] = ENTRY.sub(r"\1\2 \3 <\2_\3>", content[0])


def setup(app: Sphinx) -> None:
    app.add_directive("contents", NoContents, override=True)
    app.connect("source-read", shorten_entries)
