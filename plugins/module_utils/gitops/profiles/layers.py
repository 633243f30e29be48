# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The order in which profiles are installed: by layers, and within a layer by what needs what. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def layer_problems(layers: Mapping[str, int], needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Why releases cannot be ordered: one needs another of a higher layer, or some need each other."""
    found = [
        f"{name} in layer {layers[name]} needs {other}, which is in layer {layers[other]}: put {other} into layer {layers[name]} or lower"
        for name, others in needs.items()
        for other in others
        if layers[other] > layers[name]
    ]
    if cycle := _cycle(needs):
        found.append(f"these need each other: {' -> '.join(cycle)}")
    return found


def dependencies(layers: Mapping[str, int], needs: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """What each release waits for: all of the nearest lower layer, and those of its own layer that it needs."""
    result = {}
    for name, layer in layers.items():
        below = max((other for other in layers.values() if other < layer), default=None)
        lower = [other for other, its in layers.items() if its == below]
        same = [other for other in needs.get(name, ()) if layers[other] == layer]
        result[name] = tuple(sorted({*lower, *same}))
    return result


def _cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        branches = [iter([start])]
        while branches:
            name = next(branches[-1], None)
            if name is None:
                branches.pop()
                if path:
                    done.add(path.pop())
            elif name in path:
                return [*path[path.index(name) :], name]
            elif name not in done:
                path.append(name)
                branches.append(iter(needs.get(name, ())))
    return []
