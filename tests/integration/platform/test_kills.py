"""A run that is killed at any of its writes: the next one completes it, without duplicates and without orphans."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import Content, document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

from ..support.platform_documents import changed, content_of, without
from ..support.platform_runs import Runs, killed_run
from .test_configuration import made_by_hand


def undisturbed(*contents: Content) -> tuple[list[str], list[str], int]:
    """What a platform has by hand, what it has after runs that nothing disturbs, and how many writes the last of them sends."""
    platform = Platform()
    by_hand = made_by_hand(platform)
    with platform.serving() as url:
        runs = Runs(platform, url)
        for content in contents:
            _requests, writes = runs.measured(content)
    return by_hand, content_of(platform), writes


def platforms() -> Iterator[Runs]:
    platform = Platform()
    made_by_hand(platform)
    with platform.serving() as url:
        yield Runs(platform, url)


def test_a_run_killed_at_any_write_is_completed_by_the_next_one_and_can_be_removed() -> None:
    content = document()
    by_hand, wanted, writes = undisturbed(content)
    for last in range(writes):
        for runs in platforms():
            assert killed_run(runs, content, last), f"write {last} of {writes} was not reached"
            runs.run(content)
            assert content_of(runs.platform) == wanted, f"killed at write {last}"
            assert runs.measured(content)[1] == 0
            runs.remove()
            assert content_of(runs.platform) == by_hand, f"killed at write {last}, then removed"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda content: without(content, "controller_templates", "create-2"), id="deletion"),
        pytest.param(
            lambda content: changed(content, "eda_rulebook_activations", 0, extra_vars={"organization": "other"}), id="activation"
        ),
    ],
)
def test_a_change_killed_at_any_write_is_completed_by_the_next_run(change: Callable[[Content], Content]) -> None:
    content = document(templates=3)
    other = change(content)
    _by_hand, wanted, writes = undisturbed(content, other)
    for last in range(writes):
        for runs in platforms():
            runs.run(content)
            assert killed_run(runs, other, last)
            runs.run(other)
            assert content_of(runs.platform) == wanted, f"killed at write {last}"
