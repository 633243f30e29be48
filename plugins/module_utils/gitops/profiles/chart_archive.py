# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The archive of a chart, read at a bounded cost: its metadata, default values and schema. Nothing is unpacked to a disk."""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...common.bounded_yaml import BadYaml, load

MAX_ARCHIVE = 8 * 1024 * 1024
MAX_UNPACKED = 64 * 1024 * 1024
MAX_FILE = 1024 * 1024
MAX_MEMBERS = 10_000
METADATA, VALUES, SCHEMA = "Chart.yaml", "values.yaml", "values.schema.json"


class BadChart(ValueError):
    """Not a chart. The text is a part of a sentence."""


@dataclass(frozen=True)
class ChartFiles:
    """What a chart has for its values; `schema` is None where it has none."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    schema: Any = None


def read_chart(archive: bytes) -> ChartFiles:
    """The files of a packed chart; those of charts inside of it are not read."""
    found: dict[str, bytes] = {}
    try:
        unpacked = _unpack(archive)
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as packed:
            for number, member in enumerate(packed):
                if number >= MAX_MEMBERS:
                    raise BadChart(f"has more than {MAX_MEMBERS} files")
                folder, _slash, name = member.name.removeprefix("./").partition("/")
                if folder and name in (METADATA, VALUES, SCHEMA) and member.isfile() and name not in found:
                    if member.size > MAX_FILE:
                        raise BadChart(f"has a {name} larger than {MAX_FILE // 1024} KiB")
                    content = packed.extractfile(member)
                    found[name] = content.read() if content else b""
    except (tarfile.TarError, zlib.error, EOFError, OSError):
        raise BadChart("is not the archive of a chart") from None
    if METADATA not in found:
        raise BadChart(f"has no {METADATA}")
    return ChartFiles(_mapping(METADATA, found[METADATA]), _mapping(VALUES, found.get(VALUES, b"")), _schema(found.get(SCHEMA)))


def _unpack(archive: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    unpacked = unpacker.decompress(archive, MAX_UNPACKED)
    if unpacker.unconsumed_tail:
        raise BadChart(f"is larger than {MAX_UNPACKED // (1024 * 1024)} MiB when it is unpacked")
    return unpacked


def _mapping(name: str, content: bytes) -> Mapping[str, Any]:
    try:
        value = load(content, MAX_FILE)
    except BadYaml as error:
        raise BadChart(f"has a {name} that {error}") from None
    if not isinstance(value or {}, dict):
        raise BadChart(f"has a {name} that is not a mapping")
    return value or {}


def _schema(content: bytes | None) -> Any:
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        raise BadChart(f"has a {SCHEMA} that is not JSON") from None
