"""Which request counts when each cluster has its own copy of a DRPlacementControl."""

from __future__ import annotations

import json
from dataclasses import replace

from ansible_collections.openfleet.clusters.plugins.module_utils.dr.copies import Ask, Asked, accept, standing
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent

EAST = Intent("shop", "db", "uid-east", 1, preferred="east")
WEST = Intent("shop", "db", "uid-west", 1, preferred="east")


def changed(copy: Intent, action: str, target: str) -> Intent:
    field = "failover" if action == "Failover" else "preferred"
    return replace(copy, generation=copy.generation + 1, action=action, **{field: target})


def begun(*copies: str) -> Asked:
    found = {"east": EAST, "west": WEST}
    return accept(Asked(), {name: found[name] for name in copies or ("east", "west")}, ended=False)


def test_first_copy_that_is_read_asks_first() -> None:
    other = changed(WEST, "Failover", "west")
    assert accept(Asked(), {"east": EAST, "west": other}, ended=False).ask == Ask(preferred="east")
    assert accept(Asked(), {"west": other, "east": EAST}, ended=False).ask == Ask("Failover", "east", "west")


def test_change_on_any_copy_is_the_next_request_and_nothing_else_is() -> None:
    asked = accept(begun(), {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False)
    assert (asked.number, asked.cluster, asked.ask.action) == (2, "west", "Failover")
    again = accept(asked, {"east": replace(EAST, generation=5), "west": changed(WEST, "Failover", "west")}, ended=False)
    assert again == asked, "another field of the spec of east has changed: no revision"
    back = accept(asked, {"east": changed(EAST, "Relocate", "east"), "west": changed(WEST, "Failover", "west")}, ended=False)
    assert (back.number, back.cluster, back.ask.action) == (3, "east", "Relocate")


def test_change_during_an_outage_does_not_count_once_another_request_was_accepted() -> None:
    """Nothing tells which of the two was first: clocks of two machines are not compared."""
    silent = accept(begun(), {"west": changed(WEST, "Failover", "west")}, ended=False)
    returned = changed(EAST, "Relocate", "west")
    asked = accept(silent, {"east": returned, "west": changed(WEST, "Failover", "west")}, ended=False)
    assert (asked.number, asked.ask.action) == (2, "Failover")
    assert standing(asked, returned).status == "False"
    later = changed(returned, "Relocate", "east")
    assert accept(asked, {"east": later, "west": changed(WEST, "Failover", "west")}, ended=False).ask.preferred == "east"


def test_change_during_an_outage_counts_if_no_other_request_was_accepted() -> None:
    asked = accept(begun(), {"west": WEST}, ended=False)
    assert accept(asked, {"east": changed(EAST, "Failover", "west"), "west": WEST}, ended=False).number == 2


def test_failover_wins_over_a_relocation_at_the_same_time() -> None:
    copies = {"east": changed(EAST, "Relocate", "west"), "west": changed(WEST, "Failover", "west")}
    asked = accept(begun(), copies, ended=False)
    assert (asked.number, asked.cluster, asked.ask.action) == (2, "west", "Failover")
    assert accept(asked, copies, ended=False) == asked, "the other one is not taken afterwards"
    told = standing(asked, copies["east"])
    assert (told.status, told.reason) == ("False", "Superseded") and "Relocate to west is not in effect" in told.message


def test_new_or_restored_copy_asks_for_nothing() -> None:
    asked = accept(begun("west"), {"west": changed(WEST, "Failover", "west")}, ended=False)
    assert accept(asked, {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False).ask == asked.ask
    newer = accept(begun(), {"east": replace(changed(EAST, "Failover", "west"), generation=7), "west": WEST}, ended=False)
    restored = accept(newer, {"east": EAST, "west": WEST}, ended=False)
    assert (restored.number, restored.ask.action) == (2, "Failover")


def test_deletion_of_one_copy_ends_the_protection() -> None:
    asked = accept(begun(), {"east": EAST, "west": replace(WEST, deleting=True)}, ended=False)
    assert asked.deleting and asked.number == 2
    assert accept(asked, {"east": EAST}, ended=False).deleting, "it is not taken back"


def test_copies_of_an_ended_protection_do_not_begin_the_next_one() -> None:
    ended = replace(begun(), deleting=True)
    assert accept(ended, {"east": EAST}, ended=True) == ended, "east was silent when the protection ended"
    new = replace(WEST, uid="uid-new")
    asked = accept(ended, {"east": changed(EAST, "Failover", "east"), "west": new}, ended=True)
    assert (asked.deleting, asked.cluster, asked.ask.action) == (False, "west", "")
    assert asked.retired == ("uid-east", "uid-west") and set(asked.seen) == {"west"}
    assert accept(asked, {"east": changed(EAST, "Failover", "east"), "west": new}, ended=False) == asked


def test_request_survives_the_bucket() -> None:
    asked = accept(begun(), {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False)
    assert Asked.from_content(json.loads(json.dumps(asked.to_content()))) == asked
    assert Asked.from_content({}) == Asked()


def test_state_machine_is_told_the_request_with_its_number_as_generation() -> None:
    asked = accept(begun(), {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False)
    told = asked.apply_to(EAST)
    assert (told.uid, told.generation, told.action, told.target) == ("uid-east", 2, "Failover", "west")
