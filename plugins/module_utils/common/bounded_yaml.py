# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""YAML of others, read at a bounded cost: without aliases, by which some lines expand to gigabytes, and of a limited size and depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .third_party import yaml

MAX_BYTES = 256 * 1024  # a kubeconfig has some ten thousand
MAX_NODES = 20_000
MAX_DEPTH = 50


class BadYaml(ValueError):
    """Not YAML, or too much of it. The text says why and quotes nothing: it is a part of a sentence."""


def load(text: str | bytes, max_bytes: int = MAX_BYTES, max_nodes: int = MAX_NODES) -> Any:
    """The value of a document; BadYaml where it is none, has an alias, or is too large."""
    return _read(text, max_bytes, max_nodes, lambda content, loader: yaml.load(content, Loader=loader))


def load_all(text: str | bytes, max_bytes: int = MAX_BYTES, max_nodes: int = MAX_NODES) -> list[Any]:
    """The values of all documents in one text. The limits are for all of them together."""
    return list(_read(text, max_bytes, max_nodes, lambda content, loader: list(yaml.load_all(content, Loader=loader))))


def _read(text: str | bytes, max_bytes: int, max_nodes: int, read: Callable[[bytes, Any], Any]) -> Any:
    content = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if len(content) > max_bytes:
        raise BadYaml(f"is larger than {max_bytes // 1024} KiB")
    # The parser in C is ten times as fast, and the events of both are the same.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check(yaml.parse(content, Loader=loader), max_nodes)
        return read(content, loader)
    except BadYaml:
        raise
    # A date that does not exist, or data that is not text, raises other errors in the parser.
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        raise BadYaml("is not valid YAML") from None


def _check(events: Any, max_nodes: int) -> None:
    nodes = depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise BadYaml("has a YAML alias, which is refused; write its value out")
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if nodes > max_nodes or depth > MAX_DEPTH:
            raise BadYaml(f"has more than {max_nodes} values, or is nested deeper than {MAX_DEPTH}")
