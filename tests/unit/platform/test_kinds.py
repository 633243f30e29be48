"""The table of kinds, and the order that follows from it."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.kinds import DOCUMENT_KEYS, KINDS, ROLES
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.model import Association
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.ordering import in_reverse, kind_order
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.plan import Change


@pytest.mark.parametrize("key", KINDS)
def test_kind_refers_to_kinds_that_exist_and_has_no_field_twice(key: str) -> None:
    kind = KINDS[key]
    assert kind.targets() <= KINDS.keys()
    names = [name for member in kind.members() for name in (member.name, *member.aliases)]
    assert len(names) == len(set(names))
    assert set(kind.required) <= set(names)
    assert not set(kind.ignored) & set(names)
    assert not kind.scope or kind.reference(kind.scope)


def test_kind_comes_after_what_it_refers_to() -> None:
    order = kind_order()
    for key, kind in KINDS.items():
        for target in kind.targets() - {key}:
            assert order.index(target) < order.index(key)


def test_deletions_are_in_reverse_order() -> None:
    keys = [
        "aap_organizations",
        "controller_schedules",
        "controller_templates",
        "controller_projects",
        "eda_event_streams",
        "eda_rulebook_activations",
    ]
    groups = in_reverse([Change("delete", KINDS[key], "x") for key in keys])
    order = [group[0].kind.key for group in groups]
    for first, then in [
        ("controller_schedules", "controller_templates"),
        ("controller_templates", "controller_projects"),
        ("controller_projects", "aap_organizations"),
        ("eda_rulebook_activations", "eda_event_streams"),
    ]:
        assert order.index(first) < order.index(then)


def test_every_key_of_a_document_is_a_kind() -> None:
    assert {key for key in DOCUMENT_KEYS if key != ROLES} == {key for key, kind in KINDS.items() if not kind.read_only}


def test_lists_that_are_written_with_the_object_are_those_of_eda() -> None:
    for kind in KINDS.values():
        for member in kind.members():
            if isinstance(member, Association):
                assert (member.reading == "embedded") == (kind.api == "eda")
