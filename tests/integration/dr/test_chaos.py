"""Failovers and relocations under random kills and cuts: two API servers, an S3 server and a process of disaster recovery on each cluster.

The seed of a failed run is in its message: OPENFLEET_CHAOS_SEED repeats its faults.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.application import NotWritable
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Content, DocumentStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import History
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.gates import GATES
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Modes
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.observe import accepted_request
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import S3Error

from ..support.dr_journal import Journal, JournalReconciler, Line, read_journal, violations
from ..support.dr_observer import Observer
from ..support.dr_run import Recovery, recovery
from ..support.kubeconfigs import kubeconfig, put_kubeconfig
from ..support.links import Address, Link, Links
from ..support.replication import Protected

ROUNDS = 10  # times the factor of `make soak`
TTL, POLL, TIMEOUT = 6.0, 0.3, "2"
SETTLE_SECONDS = 600.0  # what a busy machine may need
MODULE = "ansible_collections.openfleet.clusters.tests.integration.support.dr_engine"


class Engine:
    """The process of one cluster. Each start has a journal of its own."""

    def __init__(self, folder: Path, arguments: Object) -> None:
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.journals: list[Path] = []
        self.log = folder / f"{arguments['cluster']}.log"

    def start(self) -> None:
        self.journals.append(self._folder / f"{self._arguments['cluster']}-{len(self.journals)}.journal")
        with self.log.open("a") as log:
            self._process = subprocess.Popen([sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"journal": str(self.journals[-1]), "arguments": self._arguments}) + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            if self._process.stdin:
                self._process.stdin.close()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def lines(self) -> list[Line]:
        return [line for path in self.journals if path.exists() for line in read_journal(path)]


class Site:
    """Both clusters with their processes, and the network between all of them."""

    def __init__(self, dr: Recovery, sandbox: Sandbox, links: Links, folder: Path) -> None:
        self.dr = dr
        self._sandbox = sandbox
        self.links: dict[str, Link] = {}
        self.engines: dict[str, Engine] = {}
        for name, access in dr.sites.items():
            own, store = links.add(lambda name=name: self._api_server(name)), links.add(self._store)
            self.links[f"{name} to S3"] = store
            for peer in dr.sites:
                link = own if peer == name else links.add(lambda peer=peer: self._api_server(peer))
                content = dr.peer_kubeconfig(peer)
                put_kubeconfig(access.kube, dr.namespace, f"{peer}-kubeconfig", _through(content, link))
                if peer != name:
                    self.links[f"{name} to {peer}"] = link
            dr.settings(name, timeout=TIMEOUT)
            arguments = dr.options | {
                "endpoint_url": f"http://127.0.0.1:{store.port}",
                "cluster": name,
                "kubernetes": {"kubeconfig": _through(dr.kubeconfig(name), own)},
                "site_namespace": dr.namespace,
                "ttl": TTL,
                "poll_interval": POLL,
            }
            self.engines[name] = Engine(folder, arguments)

    def _api_server(self, name: str) -> Address:
        return _address(kubeconfig(self.dr.sites[name])["clusters"][0]["cluster"]["server"])

    def _store(self) -> Address:
        return _address(self._sandbox.s3().endpoint)

    def kill_process(self, owner: str, name: str) -> None:
        for process in self._sandbox.status():
            if (process.owner, process.name) == (owner, name) and process.running:
                os.kill(process.pid, signal.SIGKILL)

    def restore(self) -> None:
        """Everything runs and answers again."""
        for link in self.links.values():
            link.heal()
        self._sandbox.up(clusters=list(self.dr.sites), replication=True)
        self._sandbox.check()
        for engine in self.engines.values():
            if not engine.is_running:
                engine.start()

    def lines(self) -> list[Line]:
        return [line for engine in self.engines.values() for line in engine.lines()]

    def position(self) -> State:
        return State.from_document(self.dr.state())

    def is_settled(self, target: str) -> bool:
        """Whether the workload is at home, its peer is ready, and both copies were read under the current request."""
        try:
            document = self.dr.state()
            state, accepted = State.from_document(document), accepted_request(document.intent)
            groups = {name: self.dr.application.get(name)["spec"]["replicationState"] for name in self.dr.sites}
            running = [name for name in self.dr.sites if self.dr.application.app.runs(self.dr.sites[name].kube)]
        except (KubeError, S3Error, KeyError):
            return False
        read = {name: accepted.observed_copies[name].number for name in self.dr.sites if name in accepted.observed_copies}
        return (
            (state.request, state.home, state.peer_ready) == (None, target, True)
            and groups == {name: "primary" if name == target else "secondary" for name in self.dr.sites}
            and running == [target]
            and read == dict.fromkeys(self.dr.sites, accepted.number)
        )

    def describe(self) -> str:
        """Where the run stands, and what it waits for."""
        texts = [f"state {self.dr.state().intent}"]
        for name in self.dr.sites:
            status = self.dr.drpc(name).get("status", {})
            waits = [item["message"] for item in status.get("conditions", []) if item["type"] == "Waiting"]
            texts.append(f"{name}: {status.get('phase')}/{status.get('progression')}, {waits}")
        return "; ".join(texts)


def _through(content: Object, link: Link) -> Object:
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{link.port}"
    return content


def _address(url: str) -> Address:
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


class Chaos:
    """One run: the faults of each round are decided by the seed before they happen."""

    def __init__(self, site: Site, seed: int) -> None:
        self._site = site
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        self.history: list[str] = []

    def run(self, number: int) -> None:
        """Ask for a move, and break things while it is under way. Then everything is restored, and the move ends."""
        dr, dice = self._site.dr, self._random
        home = self._site.position().home
        target = next(name for name in dr.sites if name != home)
        action = dice.choice(["Failover", "Relocate"])
        wanted = {"action": action, "failoverCluster" if action == "Failover" else "preferredCluster": target}
        # A copy that still shows the same request from an earlier round is ignored.
        asked_on = dice.choice([name for name in dr.sites if not self._is_asked(name, wanted)])
        written = self._write(home, number)
        events = [(dice.uniform(0, 0.5), f"{action} to {target} on {asked_on}", lambda: self._ask(asked_on, wanted))]
        events += [self._fault() for _number in range(dice.choice([1, 2, 2, 3]))]
        began = time.monotonic()
        for moment, what, cause in sorted(events, key=lambda event: event[0]):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            self.history.append(f"{number}: {moment:.2f} s {what}")
            cause()
        time.sleep(dice.uniform(0, 1.5))
        self._site.restore()
        self._ask(asked_on, wanted)  # again, if its API server was dead
        until(lambda: self._site.is_settled(target), f"{action} to {target} ends", SETTLE_SECONDS)
        if action == "Relocate":
            lost = set(written) - set(dr.application.read(target))
            assert not lost, f"the relocation to {target} lost {lost}"

    def _write(self, home: str, number: int) -> list[str]:
        try:
            self._site.dr.application.write(home, f"round {number}")
        except NotWritable:
            return []
        return self._site.dr.application.read(home)

    def _is_asked(self, site: str, wanted: dict[str, str]) -> bool:
        return wanted.items() <= self._site.dr.drpc(site)["spec"].items()

    def _ask(self, site: str, wanted: dict[str, str]) -> None:
        try:
            if not self._is_asked(site, wanted):
                self._site.dr.ask(site, **wanted)
        except KubeError as error:
            self.history.append(f"not asked: {error}")

    def _fault(self) -> tuple[float, str, Callable[[], None]]:
        dice, site = self._random, self._site
        name, moment = dice.choice(list(site.dr.sites)), dice.uniform(0, 2)
        kind = dice.choice(["engine", "engine", "API server", "S3", "cut", "cut", "cut"])
        if kind == "engine":
            return moment, f"kill the engine of {name}", site.engines[name].restart
        if kind == "API server":
            return moment, f"kill the API server of {name}", lambda: site.kill_process(name, "kube-apiserver")
        if kind == "S3":
            return moment, "kill S3", lambda: site.kill_process("s3", "versitygw")
        way, refuse = dice.choice(sorted(site.links)), dice.random() < 0.5
        return moment, f"cut {way}, {'refused' if refuse else 'dropped'}", lambda: site.links[way].cut(refuse=refuse)


def found_in(dr: Recovery, lines: Callable[[], list[Line]], observer: Observer, known: dict[int, Content]) -> list[str]:
    """Broken invariants. What was done is read before what was recorded: the leader goes on meanwhile.

    `known` has the revisions of the run by number: the bucket keeps only the newest ones.
    """
    done, count = lines(), observer.count
    # A writer that was killed leaves the last revision to its successor, which adds it to the history.
    current = dr.state().content()
    known |= {entry["revision"]: entry for entry in [current, *dr.history()]}
    revisions = [known[number] for number in sorted(known)]
    return violations(revisions, done) + observer.violations(count, {(entry["epoch"], entry["revision"]) for entry in revisions})


@pytest.fixture
def site(application: Protected, bucket: dict[str, str], sandbox: Sandbox, tmp_path: Path) -> Iterator[Site]:
    with recovery(application, bucket) as dr, Links().running() as links:
        created = Site(dr, sandbox, links, tmp_path)
        try:
            yield created
        finally:
            for engine in created.engines.values():
                engine.kill()
            sandbox.up(clusters=list(dr.sites), replication=True)


def test_moves_under_random_faults_end_without_two_primaries_or_leaders_or_lost_data(site: Site, soak: int) -> None:
    seed = int(os.environ.get("OPENFLEET_CHAOS_SEED") or secrets.randbits(32))
    chaos, dr = Chaos(site, seed), site.dr
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("east")
    known: dict[int, Content] = {}
    with Observer(dr.sites, dr.namespace).running() as observer:
        try:
            site.restore()
            until(lambda: site.is_settled("east"), "the deployment", SETTLE_SECONDS)
            for number in range(ROUNDS * soak):
                chaos.run(number)
                assert found_in(dr, site.lines, observer, known) == []
        except BaseException as error:
            error.add_note(f"OPENFLEET_CHAOS_SEED={seed} repeats these faults: {chaos.history}")
            error.add_note(site.describe())
            raise
    assert observer.count > ROUNDS


def test_the_checkers_object_to_a_run_with_open_gates(
    application: Protected, bucket: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recovery(application, bucket) as dr, Observer(dr.sites, dr.namespace).running() as observer:
        journal = tmp_path / "west.journal"
        kube = Kube.connect({"kubeconfig": dr.kubeconfig("west")})
        access = Modes(kube, dr.namespace, dr.store, "west").access()
        reconciler = JournalReconciler(Journal(journal), kube, access, dr.store, "west")
        application.place("east")
        application.place("west", replicas=0)
        dr.protect("west")
        epoch = dr.acquire("west")
        known: dict[int, Content] = {}

        def found() -> list[str]:
            return found_in(dr, lambda: read_journal(journal), observer, known)

        def leads_to(*actions: str) -> bool:
            result = reconciler.lead(dr.workload, epoch)
            return result.ended == "Settled" if not actions else bool(set(actions) & set(result.actions))

        until(leads_to, "the deployment", SETTLE_SECONDS)
        assert found() == []
        assert History(DocumentStore(dr.store, dr.workload.identity()), dr.workload).prune(keep=1)
        assert found() == [], "a run has more revisions than the bucket keeps"
        application.fault("west", "restore=600")
        for gate in ("Restored", "TargetReady"):
            monkeypatch.setitem(GATES, gate, lambda _context: None)
        dr.ask("west", action="Failover", failoverCluster="west")
        until(lambda: leads_to("start the workload on west"), "the start", SETTLE_SECONDS)
        until(lambda: "the workload is started on west without its data" in found(), "the observer sees it", SETTLE_SECONDS)
        assert {rule.split(" at ")[0] for rule in found()} >= {"DataBeforeWorkload", "DecisionFollowsData"}
