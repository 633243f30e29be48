"""Which request counts when each cluster has its own copy of a DRPlacementControl."""

from __future__ import annotations

import json
from dataclasses import replace

from ansible_collections.openfleet.clusters.plugins.module_utils.dr.copies import AcceptedRequest, RequestSpec, accept, is_noop, standing
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent

EAST = Intent("shop", "db", "uid-east", 1, preferred="east")
WEST = Intent("shop", "db", "uid-west", 1, preferred="east")


def changed(copy: Intent, action: str, target: str) -> Intent:
    field = "failover" if action == "Failover" else "preferred"
    return replace(copy, generation=copy.generation + 1, action=action, **{field: target})


def begun(*copies: str) -> AcceptedRequest:
    found = {"east": EAST, "west": WEST}
    return accept(AcceptedRequest(), {name: found[name] for name in copies or ("east", "west")}, ended=False)


def test_first_copy_that_is_read_asks_first() -> None:
    other = changed(WEST, "Failover", "west")
    assert accept(AcceptedRequest(), {"east": EAST, "west": other}, ended=False).spec == RequestSpec(preferred="east")
    assert accept(AcceptedRequest(), {"west": other, "east": EAST}, ended=False).spec == RequestSpec("Failover", "east", "west")


def test_change_on_any_copy_is_the_next_request_and_nothing_else_is() -> None:
    accepted = accept(begun(), {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False)
    assert (accepted.number, accepted.cluster, accepted.spec.action) == (2, "west", "Failover")
    again = accept(accepted, {"east": replace(EAST, generation=5), "west": changed(WEST, "Failover", "west")}, ended=False)
    assert again == accepted, "another field of the spec of east has changed: no revision"
    back = accept(accepted, {"east": changed(EAST, "Relocate", "east"), "west": changed(WEST, "Failover", "west")}, ended=False)
    assert (back.number, back.cluster, back.spec.action) == (3, "east", "Relocate")


def test_change_during_an_outage_does_not_count_once_another_request_was_accepted() -> None:
    """Nothing tells which of the two was first: clocks of two machines are not compared."""
    silent = accept(begun(), {"west": changed(WEST, "Failover", "west")}, ended=False)
    returned = changed(EAST, "Relocate", "west")
    accepted = accept(silent, {"east": returned, "west": changed(WEST, "Failover", "west")}, ended=False)
    assert (accepted.number, accepted.spec.action) == (2, "Failover")
    assert standing(accepted, returned, "west").status == "False"
    later = changed(returned, "Relocate", "east")
    assert accept(accepted, {"east": later, "west": changed(WEST, "Failover", "west")}, ended=False).spec.preferred == "east"


def test_change_during_an_outage_counts_if_no_other_request_was_accepted() -> None:
    accepted = accept(begun(), {"west": WEST}, ended=False)
    assert accept(accepted, {"east": changed(EAST, "Failover", "west"), "west": WEST}, ended=False).number == 2


def test_failover_wins_over_a_relocation_at_the_same_time() -> None:
    copies = {"east": changed(EAST, "Relocate", "west"), "west": changed(WEST, "Failover", "west")}
    accepted = accept(begun(), copies, ended=False)
    assert (accepted.number, accepted.cluster, accepted.spec.action) == (2, "west", "Failover")
    assert accept(accepted, copies, ended=False) == accepted, "the other one is not taken afterwards"
    shown = standing(accepted, copies["east"], "west")
    assert (shown.status, shown.reason) == ("False", "Superseded") and "Relocate to west is not in effect" in shown.message


def test_new_or_restored_copy_is_ignored() -> None:
    accepted = accept(begun("west"), {"west": changed(WEST, "Failover", "west")}, ended=False)
    assert accept(accepted, {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False).spec == accepted.spec
    newer = accept(begun(), {"east": replace(changed(EAST, "Failover", "west"), generation=7), "west": WEST}, ended=False)
    restored = accept(newer, {"east": EAST, "west": WEST}, ended=False)
    assert (restored.number, restored.spec.action) == (2, "Failover")


def test_deletion_of_one_copy_ends_the_protection() -> None:
    accepted = accept(begun(), {"east": EAST, "west": replace(WEST, deleting=True)}, ended=False)
    assert accepted.deleting and accepted.number == 2
    assert accept(accepted, {"east": EAST}, ended=False).deleting, "it is not taken back"


def test_copies_of_an_ended_protection_do_not_begin_the_next_one() -> None:
    ended = replace(begun(), deleting=True)
    assert accept(ended, {"east": EAST}, ended=True) == ended, "east was silent when the protection ended"
    new = replace(WEST, uid="uid-new")
    accepted = accept(ended, {"east": changed(EAST, "Failover", "east"), "west": new}, ended=True)
    assert (accepted.deleting, accepted.cluster, accepted.spec.action) == (False, "west", "")
    assert accepted.retired == ("uid-east", "uid-west") and set(accepted.observed_copies) == {"west"}
    assert accept(accepted, {"east": changed(EAST, "Failover", "east"), "west": new}, ended=False) == accepted


def test_request_survives_the_bucket() -> None:
    accepted = accept(begun(), {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False)
    assert AcceptedRequest.from_content(json.loads(json.dumps(accepted.to_content()))) == accepted
    assert AcceptedRequest.from_content({}) == AcceptedRequest()
    assert AcceptedRequest.from_content({"number": 3, "cluster": "west"}) == AcceptedRequest(), "no copies: nothing says which is newer"


def test_state_machine_gets_the_request_with_its_number_as_generation() -> None:
    accepted = accept(begun(), {"east": EAST, "west": changed(WEST, "Failover", "west")}, ended=False)
    shown = accepted.apply_to(EAST)
    assert (shown.uid, shown.generation, shown.action, shown.target) == ("uid-east", 2, "Failover", "west")


def test_copy_that_the_leader_has_not_read_is_not_shown_as_accepted() -> None:
    """The leader may not reach its cluster: what another process makes of the copy says nothing."""
    shown = standing(begun(), changed(WEST, "Failover", "west"), "east")
    assert (shown.status, shown.reason) == ("False", "NotReadYet")
    assert shown.message.startswith(
        "east leads and has not read Failover to west; request 1, no action (preferredCluster east), is in effect."
    )
    accepted = accept(begun(), {"east": changed(EAST, "Relocate", "west")}, ended=False)
    assert standing(accepted, WEST, "east").reason == "NotReadYet", "it was read under an earlier request only"
    back = changed(WEST, "Relocate", "west")
    assert standing(accepted, back, "east").reason == "NotReadYet", "it shows the request in effect, and was not read so"
    accepted = accept(accepted, {"east": changed(EAST, "Relocate", "west"), "west": back}, ended=False)
    assert standing(accepted, back, "east").reason == "Accepted"


def test_copy_that_was_read_before_the_name_of_its_cluster_was_known_is_accepted() -> None:
    other = changed(WEST, "Relocate", "west")
    accepted = accept(begun("east"), {"": WEST, "east": changed(EAST, "Relocate", "west")}, ended=False)
    accepted = accept(accepted, {"west": other, "east": changed(changed(EAST, "Relocate", "west"), "Relocate", "east")}, ended=False)
    assert (accepted.observed_copies[""].number, accepted.observed_copies["west"].number) == (2, 3)
    back = replace(WEST, generation=3, action="Relocate", preferred="east")
    accepted = accept(accepted, {"west": back}, ended=False)
    assert standing(accepted, back, "east").reason == "Accepted"


def superseded() -> tuple[AcceptedRequest, dict[str, Intent]]:
    """Failover to west was requested on west, then Relocate to east on east."""
    copies = {"east": EAST, "west": changed(WEST, "Failover", "west")}
    accepted = accept(begun(), copies, ended=False)
    copies = {"east": changed(EAST, "Relocate", "east"), "west": copies["west"]}
    return accept(accepted, copies, ended=False), copies


def test_copy_that_shows_another_request_is_ignored_until_it_changes() -> None:
    accepted, copies = superseded()
    assert (accepted.number, accepted.spec.action) == (3, "Relocate")
    assert is_noop(accepted, copies["west"]) and not is_noop(accepted, copies["east"])
    assert is_noop(accepted, replace(copies["west"], uid="restored")), "it is new to the leader"
    assert not is_noop(accepted, changed(copies["west"], "Relocate", "west")), "the leader will read it"
    assert not is_noop(AcceptedRequest(), copies["west"]) and not is_noop(replace(accepted, deleting=True), copies["west"])


def test_superseded_copy_asks_again_after_it_was_read_with_the_request_in_effect() -> None:
    accepted, copies = superseded()
    stale = copies["west"]
    silent = {"west": replace(stale, generation=stale.generation + 2)}
    assert accept(accepted, silent, ended=False).number == 3, "there and back without a read between is no change"
    shown = replace(stale, generation=stale.generation + 1, action="Relocate", failover="", preferred="east")
    read = accept(accepted, {"west": shown}, ended=False)
    assert read.number == 3, "it requests nothing new"
    again = accept(read, {"west": replace(stale, generation=shown.generation + 1)}, ended=False)
    assert (again.number, again.cluster, again.spec) == (4, "west", RequestSpec("Failover", "east", "west"))


def test_copies_that_differ_in_an_empty_bucket_are_disputed_until_one_changes() -> None:
    stale, current = changed(WEST, "Failover", "west"), changed(EAST, "Relocate", "east")
    accepted = accept(AcceptedRequest(), {"west": stale, "east": current}, ended=False)
    assert accepted.disputed and accepted.apply_to(EAST).disputed
    assert not accept(accepted, {"west": changed(stale, "Relocate", "east")}, ended=False).disputed
    agreed = replace(stale, uid=EAST.uid, generation=current.generation + 1)
    assert not accept(accepted, {"west": stale, "east": agreed}, ended=False).disputed
    assert not accept(AcceptedRequest(), {"west": stale}, ended=False).disputed and not superseded()[0].disputed
    assert set(accepted.to_content()) == {"number", "cluster", "spec", "deleting", "observed_copies", "retired"}, (
        "an earlier version reads no other field"
    )
