# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values of a release, merged as Helm merges them. A pure function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merged key by key, where the last one counts; everything else is replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            before = result.get(key)
            result[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return result
