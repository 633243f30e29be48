"""A reference page of the event sources from their DOCUMENTATION and EXAMPLES, because antsibull-docs knows no such plugins.

The files are parsed and not imported: their imports need a rules engine.
"""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from antsibull_docs_parser.parser import Context, parse
from antsibull_docs_parser.rst import rst_escape, to_rst


def page(folder: Path) -> str:
    """One section for each event source in the folder, in reStructuredText."""
    parts = [_title("Event sources", "="), "The plugins that emit events to rulebooks, with their arguments.\n"]
    parts += [_section(file.stem, _texts(file)) for file in sorted(folder.glob("*.py"))]
    return "\n".join(parts)


def _texts(file: Path) -> dict[str, str]:
    """The string constants at the top level of a Python file, by name."""
    return {
        target.id: statement.value.value
        for statement in ast.parse(file.read_text()).body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _section(name: str, texts: dict[str, str]) -> str:
    documentation = yaml.safe_load(texts["DOCUMENTATION"])
    parts = [
        _title(f"openfleet.clusters.{name} -- {rst_escape(documentation['short_description'])}", "-"),
        *_paragraphs(documentation["description"]),
        _title("Arguments", "~"),
        *_options(documentation["options"]),
        _title("Example", "~"),
        ".. code-block:: yaml\n",
        textwrap.indent(texts["EXAMPLES"].strip("\n"), "   ") + "\n",
    ]
    return "\n".join(parts)


def _title(text: str, underline: str) -> str:
    return f"{text}\n{underline * len(text)}\n"


def _paragraphs(description: str | list[str]) -> Iterator[str]:
    for text in [description] if isinstance(description, str) else description:
        yield to_rst(parse(text, Context())) + "\n"


def _options(options: dict[str, Any]) -> Iterator[str]:
    """A definition list; what is inside an option is indented below it."""
    for name, option in options.items():
        yield f"``{name}`` ({', '.join(_facts(option))})"
        inside = [*_paragraphs(option["description"]), *_options(option.get("suboptions", {}))]
        yield textwrap.indent("\n".join(inside), "   ")


def _facts(option: dict[str, Any]) -> Iterator[str]:
    yield option["type"] + (f" of {option['elements']}" if "elements" in option else "")
    if option.get("required"):
        yield "required"
    if "choices" in option:
        yield f"one of {', '.join(f'``{choice}``' for choice in option['choices'])}"
    if "default" in option:
        yield f"default ``{json.dumps(option['default'])}``"
