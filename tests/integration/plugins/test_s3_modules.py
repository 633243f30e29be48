"""The S3 modules as a playbook uses them, on a real S3 server: twice, in check mode, with what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place, awake
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import Decision, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.playbooks import Answer, Played, Task, play, task
from ..support.s3_proxy import Proxy

Options = dict[str, Any]
PLACE = Place("shop", "database")


class Run:
    """Tasks against one bucket, of which each that fails lets the next go on."""

    def __init__(self, bucket: Options, folder: Path) -> None:
        self._bucket, self._folder = bucket, folder
        self._tasks: list[Task] = []

    def __call__(self, module: str, called: str, *, check: bool = False, **arguments: Any) -> None:
        place = {} if module == "s3_coordination_check" else PLACE.identity()
        self._tasks.append(task(module, called, check=check, **self._bucket | place | arguments))

    def play(self) -> Played:
        played = play(self._folder, self._tasks)
        assert self._bucket["secret_key"] not in played.output
        return played


@pytest.fixture
def run(bucket: Options, tmp_path: Path) -> Run:
    return Run(bucket, tmp_path)


@pytest.fixture
def documents(bucket: Options) -> Documents:
    return Documents(connect(bucket), PLACE.identity())


def told(answer: Answer, *names: str) -> list[Any]:
    assert not answer.failed, answer.result
    return [answer.result[name] for name in names]


def test_a_lease_is_taken_renewed_and_given_back(run: Run) -> None:
    run("s3_lock", "before", state="seen")
    run("s3_lock", "predicted", check=True)
    run("s3_lock", "taken", ttl=60)
    run("s3_lock", "again in check mode", check=True)
    run("s3_lock", "again", ttl=60)
    run("s3_lock", "other", holder="west")
    run("s3_lock", "other in check mode", check=True, holder="west")
    run("s3_lock", "not other's to give back", holder="west", state="released")
    run("s3_lock", "give back in check mode", check=True, state="released")
    run("s3_lock", "given back", state="released")
    run("s3_lock", "given back again", state="released")
    run("s3_lock", "next", holder="west", wait_timeout=5)
    run("s3_lock", "after", state="seen")
    played = run.play()
    assert told(played["before"], "changed", "epoch") == [False, 0]
    assert told(played["predicted"], "changed", "epoch") == [True, 1]
    assert told(played["taken"], "changed", "epoch") == [True, 1]
    assert 30 < played["taken"].result["acting_seconds"] <= 40
    assert told(played["again in check mode"], "changed", "epoch") == [False, 1]
    assert told(played["again"], "changed", "epoch") == [False, 1]
    for refused in ("other", "other in check mode"):
        assert played[refused].result["reason"] == "Held"
        assert "under epoch 1" in played[refused].message
        assert "wait_timeout" in played[refused].message
    assert not played.fine("not other's to give back").changed
    assert played.fine("give back in check mode").changed
    assert told(played["given back"], "changed", "epoch") == [True, 1]
    assert not played.fine("given back again").changed
    assert told(played["next"], "changed", "epoch") == [True, 2]
    assert played["after"].result["lock"]["holder"] == "west"


def test_a_term_that_is_over_is_not_renewed_though_nobody_else_has_led(run: Run, documents: Documents) -> None:
    # As the task of an hour ago has left it.
    assert Lease(documents.store, PLACE, "east", "east", 30, lambda: awake() - 3600).attempt()
    run("s3_lock", "predicted", check=True, holder="east")
    run("s3_lock", "begins anew", holder="east", ttl=600)
    run("s3_lock", "again", holder="east", ttl=600)
    run("s3_lock", "once more", holder="east", ttl=600)
    played = run.play()
    for new in ("predicted", "begins anew"):
        assert told(played[new], "changed", "epoch") == [True, 2]
    for same in ("again", "once more"):
        assert told(played[same], "changed", "epoch") == [False, 2]
    # What a renewal has gained is known to the next task.
    assert played["again"].result["lock"]["stops"] > played["begins anew"].result["lock"]["stops"]


def test_a_lease_of_one_who_died_is_taken_over_when_it_has_expired(run: Run, documents: Documents) -> None:
    dead = Lease(documents.store, PLACE, "dead", "dead-1", 10)
    assert dead.attempt()
    run("s3_lock", "too early", holder="west", wait_timeout=1)
    run("s3_lock", "in time", holder="west", wait_timeout=60)
    played = run.play()
    assert played["too early"].result["reason"] == "Held"
    assert told(played["in time"], "changed", "epoch") == [True, 2]
    assert not dead.acting()


def test_state_and_decision_are_written_under_the_epoch_and_once(run: Run, documents: Documents) -> None:
    run("s3_state", "empty")
    run("s3_state", "without an epoch", step="One")
    run("s3_lock", "lead", holder="east")
    wanted = {"epoch": 1, "intent": {"cluster": "west"}, "step": "One"}
    run("s3_state", "predicted", check=True, **wanted)
    run("s3_state", "written", expected_revision=1, **wanted)
    run("s3_state", "again", expected_revision=1, **wanted)
    run("s3_state", "stale", expected_revision=1, epoch=1, step="Two")
    run("s3_state", "wrong epoch", epoch=7, step="Two")
    run("s3_decision", "decision predicted", check=True, epoch=1, decision={"cluster": "west"})
    run("s3_decision", "decided", epoch=1, decision={"cluster": "west"}, step="Two")
    run("s3_decision", "decided again", epoch=1, decision={"cluster": "west"}, step="Two")
    run("s3_decision", "read")
    run("s3_history_info", "history", newest=2)
    run("s3_lock", "stop", holder="east", state="released")
    run("s3_state", "after the release", epoch=1, step="Three")
    run("s3_lock", "other leads", holder="west")
    run("s3_decision", "old epoch", epoch=1, decision={"cluster": "east"})
    played = run.play()
    assert told(played["empty"], "changed", "revision") == [False, 0]
    assert "epoch" in played["without an epoch"].message
    assert told(played["predicted"], "changed", "revision") == [True, 2]
    assert played["predicted"].result["diff"]["after"]["step"] == "One"
    assert told(played["written"], "changed", "revision") == [True, 2]
    assert played["written"].result["diff"]["before"]["step"] == ""
    assert told(played["again"], "changed", "revision") == [False, 2]
    assert played["stale"].result["reason"] == "StaleRevision"
    assert played["wrong epoch"].result["reason"] == "Fenced"
    assert told(played["decision predicted"], "changed", "mirrored") == [True, False]
    assert told(played["decided"], "changed", "revision", "mirrored") == [True, 3, True]
    assert told(played["decided again"], "changed", "revision") == [False, 3]
    assert told(played["read"], "changed", "decision", "mirrored") == [False, {"cluster": "west"}, True]
    history = played.fine("history").result
    assert [entry["revision"] for entry in history["history"]] == [2, 3]
    assert history["kept"] == 3
    assert "nonce" not in history["history"][0]
    assert played["after the release"].result["reason"] == "Fenced"
    assert played["old epoch"].result["reason"] == "Fenced"
    assert StateStore(documents, PLACE).read().step == "Two"
    assert Decision(documents, PLACE).read().decision == {"cluster": "west"}


def test_places_whose_names_make_the_same_key_are_told_apart(run: Run) -> None:
    run("s3_lock", "first", namespace="a-b", name="c", holder="east")
    for module in ("s3_lock", "s3_state", "s3_decision"):
        run(module, module, namespace="a", name="b-c")
    run("s3_lock", "bad name", namespace="A/b", name="c")
    played = run.play()
    assert not played["first"].failed
    for module in ("s3_lock", "s3_state", "s3_decision"):
        assert played[module].result["reason"] == "WrongIdentity"
        assert "Rename one" in played[module].message
    assert "'A/b' is no name" in played["bad name"].message


def test_store_is_proven_or_refused_with_a_table(run: Run, faulty: tuple[Proxy, Options]) -> None:
    proxy, through = faulty
    proxy.strips_conditions = True
    run("s3_coordination_check", "honest")
    run("s3_coordination_check", "in check mode", check=True)
    run("s3_coordination_check", "without conditions", endpoint_url=through["endpoint_url"])
    run("s3_coordination_check", "no bucket", bucket="absent")
    run("s3_coordination_check", "nobody there", endpoint_url="http://127.0.0.1:9")
    played = run.play()
    assert not played.fine("honest").changed
    assert all(finding["passed"] for finding in played["honest"].result["findings"])
    assert "8 replace at the same moment" in played["honest"].result["table"]
    assert played.answers.get("in check mode") is None or played["in check mode"].result["skipped"]
    assert played["without conditions"].result["reason"] == "NoConditions"
    assert "does not honour conditional writes" in played["without conditions"].message
    assert "FAILED" in played["without conditions"].result["table"]
    assert played["no bucket"].result["reason"] == "NoSuchBucket"
    assert played["nobody there"].result["retryable"]


def test_every_task_that_writes_refuses_a_way_on_which_conditions_are_lost(run: Run, faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.strips_conditions = True
    lossy = {"endpoint_url": options["endpoint_url"]}
    run("s3_lock", "begin", **lossy)
    # The leader has a way that is honest. That says nothing of the ways of others, nor of its own on another day.
    run("s3_lock", "lead", holder="east", ttl=600)
    run("s3_lock", "renew", holder="east", **lossy)
    run("s3_lock", "give back", holder="east", state="released", **lossy)
    run("s3_state", "write", epoch=1, step="One", **lossy)
    run("s3_decision", "decide", epoch=1, decision={"cluster": "west"}, **lossy)
    # What does not write needs no conditions.
    run("s3_state", "predict", check=True, epoch=1, step="One", **lossy)
    run("s3_state", "read", **lossy)
    run("s3_decision", "read decision", **lossy)
    run("s3_lock", "look", state="seen", **lossy)
    played = run.play()
    told(played["lead"])
    for refused in ("begin", "renew", "give back", "write", "decide"):
        assert played[refused].result["reason"] == "NoConditions"
        assert "does not honour conditional writes" in played[refused].message
    assert told(played["predict"], "changed") == [True]
    assert told(played["read"], "revision") == [1]
    assert told(played["read decision"], "decision") == [{}]
    assert played.fine("look").result["lock"] == played["lead"].result["lock"]
    assert [path for method, path, _status in proxy.passed if method != "GET" and "/drpc-" in path] == []


def test_what_a_proof_costs(run: Run, faulty: tuple[Proxy, Options]) -> None:
    """A task that writes pays for four requests, and not for the whole proof; one that does not, or finds the lease held, for none."""
    proxy, options = faulty
    through = {"endpoint_url": options["endpoint_url"]}
    run("s3_lock", "lead", holder="east", ttl=600)
    run("s3_state", "first", epoch=1, step="One", **through)
    run("s3_state", "second", epoch=1, step="Two", **through)
    run("s3_state", "read", **through)
    run("s3_lock", "held", holder="west", **through)
    played = run.play()
    assert not any(played[done].failed for done in ("lead", "first", "second", "read"))
    assert played["held"].result["reason"] == "Held"
    proofs = [method for method, path, _status in proxy.passed if "/coordination-check/" in path]
    # The first has to put the object there that it is tried on.
    assert proofs == ["PUT", "PUT", "GET", "PUT", "GET", "PUT", "GET", "PUT", "GET"]
