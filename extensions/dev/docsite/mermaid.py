"""A Sphinx extension that draws the Mermaid diagrams of Markdown pages as SVG files during the build. Browsers run no script for them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import mmdr
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "diagrams"


class Mermaid(SphinxDirective):
    """The diagram as an image. Its source is the text that is read out, or shown where images are not."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        source = "\n".join(self.content)
        try:
            drawn = mmdr.render(source).svg()
        except ValueError as error:
            raise self.error(f"Mermaid cannot draw this diagram: {error}") from error
        name = f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.svg"
        folder = Path(self.env.srcdir) / FOLDER
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(drawn)
        # With a width, Sphinx links the image to its file: a wide diagram is small in the column of the text.
        return [nodes.image(uri=f"/{FOLDER}/{name}", alt=source, width=f"{_width(drawn)}px", classes=["mermaid"])]


def _width(drawn: str) -> int:
    """The width of an SVG in its own coordinates."""
    found = re.search(r'viewBox="\S+ \S+ (\S+) ', drawn)
    assert found is not None
    return round(float(found[1]))


def setup(app: Sphinx) -> None:
    app.add_directive("mermaid", Mermaid)
