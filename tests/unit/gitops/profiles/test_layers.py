"""The order of installation as properties: for any profiles, layers and needs."""

from __future__ import annotations

import itertools

from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.layers import dependencies, layer_problems
from hypothesis import strategies as st

from ...properties import for_any

names = st.sampled_from("abcdefgh")
layers_of = st.dictionaries(names, st.integers(-3, 12), min_size=1)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, list[str]]]:
    layers = draw(layers_of)
    present = st.sampled_from(sorted(layers))
    needs = {name: draw(st.lists(present, max_size=3, unique=True)) for name in layers}
    return layers, {name: [other for other in others if other != name] for name, others in needs.items()}


def reachable(start: str, edges: dict[str, tuple[str, ...]]) -> set[str]:
    found: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += edges[name]
    return found


@for_any(layers_of)
def test_a_release_waits_for_all_of_the_nearest_lower_layer_and_for_no_other(layers: dict[str, int]) -> None:
    for name, waits in dependencies(layers, {}).items():
        lower = sorted({layer for layer in layers.values() if layer < layers[name]})
        assert set(waits) == ({other for other, layer in layers.items() if layer == lower[-1]} if lower else set())


@for_any(graphs())
def test_what_can_be_ordered_waits_for_every_lower_layer_and_every_need_and_never_for_itself(
    graph: tuple[dict[str, int], dict[str, list[str]]],
) -> None:
    layers, needs = graph
    if layer_problems(layers, needs):
        return
    edges = dependencies(layers, needs)
    for name in layers:
        before = reachable(name, edges)
        assert name not in before
        assert before >= {other for other, layer in layers.items() if layer < layers[name]}
        assert before >= set(needs[name])


@for_any(graphs())
def test_a_refusal_names_a_need_of_a_higher_layer_or_a_cycle_that_exists(graph: tuple[dict[str, int], dict[str, list[str]]]) -> None:
    layers, needs = graph
    for problem in layer_problems(layers, needs):
        if problem.startswith("these need each other: "):
            path = problem.removeprefix("these need each other: ").split(" -> ")
            assert path[0] == path[-1] and len(path) > 1
            assert all(after in needs[before] for before, after in itertools.pairwise(path))
        else:
            name, other = problem.split()[0], problem.split()[5].rstrip(",")
            assert other in needs[name] and layers[other] > layers[name]
    upward = any(layers[other] > layers[name] for name, others in needs.items() for other in others)
    assert not upward or layer_problems(layers, needs)


def test_layers_are_numbers_and_not_texts() -> None:
    assert dependencies({"two": 2, "ten": 10, "eleven": 11}, {})["eleven"] == ("ten",)
