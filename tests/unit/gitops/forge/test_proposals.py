"""Proposals on each kind of forge: opened once, continued after any interruption, and refused with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.base import Credentials, Forge, ForgeError
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.factory import FORGES, forge_of
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.github import GitHub
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.proposal import Proposal, propose

from ..http_server import Reply, Request, serving
from .forge_standins import NAME, STAND_INS, TOKEN, Repository, StandIn

PROPOSAL = Proposal("orders/team/demo.yaml", "kind: ClusterOrder\n", "team/demo", "Order the cluster team/demo", "A body")


@dataclass
class Site:
    standin: StandIn
    forge: Forge
    credentials: Credentials
    kind: str
    asked: list[Request]

    @property
    def repository(self) -> Repository:
        return self.standin.repository


@pytest.fixture(params=sorted(STAND_INS))
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    standin = STAND_INS[request.param]()
    with serving(standin) as server:
        credentials = Credentials(server.url, NAME, TOKEN)
        yield Site(standin, forge_of(request.param, credentials), credentials, request.param, server.asked)


def test_every_kind_of_forge_has_a_stand_in() -> None:
    assert set(STAND_INS) == {name for name in FORGES if name != "forgejo"}, "forgejo is gitea"


def test_the_same_proposal_is_opened_once(site: Site) -> None:
    first = propose(site.forge, PROPOSAL)
    assert first.changed and first.pull_request and first.before is None
    asked = len(site.asked)
    second = propose(site.forge, PROPOSAL)
    assert (second.changed, second.pull_request) == (False, first.pull_request)
    assert {request.method for request in site.asked[asked:]} == {"GET"}, "the open one is only read"
    assert (len(site.repository.pulls), site.repository.writes) == (1, 1)
    assert site.repository.branches[first.branch] == {PROPOSAL.path: PROPOSAL.content}
    assert site.repository.branches["main"] == {}


def test_what_is_merged_is_not_proposed_again(site: Site) -> None:
    opened = propose(site.forge, PROPOSAL).pull_request
    assert opened
    site.repository.merge(opened.number)
    again = propose(site.forge, PROPOSAL)
    assert (again.changed, again.pull_request) == (False, None)


def test_a_change_and_a_deletion_are_proposals_of_their_own(site: Site) -> None:
    site.repository.branches["main"] = {PROPOSAL.path: "old\n", "README.md": "hello"}
    changed = propose(site.forge, PROPOSAL)
    deleted = propose(site.forge, replace(PROPOSAL, content=None))
    assert changed.branch != deleted.branch and len(site.repository.pulls) == 2
    assert site.repository.branches[changed.branch][PROPOSAL.path] == PROPOSAL.content
    assert site.repository.branches[deleted.branch] == {"README.md": "hello"}
    nothing = propose(site.forge, replace(PROPOSAL, path="orders/team/other.yaml", content=None))
    assert (nothing.changed, nothing.pull_request) == (False, None)


def test_a_closed_proposal_can_be_opened_again(site: Site) -> None:
    first = propose(site.forge, PROPOSAL).pull_request
    assert first
    site.repository.close(first.number)
    second = propose(site.forge, PROPOSAL)
    assert second.changed and second.pull_request and second.pull_request.number == 2


def test_check_mode_writes_nothing(site: Site) -> None:
    predicted = propose(site.forge, PROPOSAL, check_mode=True)
    assert (predicted.changed, predicted.pull_request) == (True, None)
    assert list(site.repository.branches) == ["main"] and {request.method for request in site.asked} == {"GET"}


def test_a_proposal_that_was_interrupted_anywhere_is_continued(site: Site) -> None:
    propose(site.forge, PROPOSAL)
    requests = len(site.asked)
    for number in range(1, requests + 1):
        site.standin.repository = Repository()
        seen = iter(range(1, requests + 100))
        site.standin.fails = lambda _request, seen=seen, number=number: Reply(500) if next(seen) == number else None  # type: ignore[misc]
        with pytest.raises(ForgeError, match="answers 500"):
            propose(site.forge, PROPOSAL)
        site.standin.fails = lambda _request: None
        assert propose(site.forge, PROPOSAL).pull_request
        assert (len(site.repository.pulls), site.repository.writes) == (1, 1), f"interrupted at request {number}"


def test_a_pull_request_whose_answer_was_lost_is_found(site: Site) -> None:
    answer = site.standin.answer
    lost: list[Any] = []

    def lose(call: Any) -> Reply:
        found = answer(call)
        if call.method == "POST" and call.path in ("/pulls", "/merge_requests") and not lost:
            lost.append(found)
            return Reply(502)
        return found

    site.standin.answer = lose  # type: ignore[method-assign]
    with pytest.raises(ForgeError, match="answers 502"):
        propose(site.forge, PROPOSAL)
    again = propose(site.forge, PROPOSAL)
    assert again.pull_request and (again.changed, len(site.repository.pulls)) == (False, 1)


def test_files_below_a_folder_are_listed(site: Site) -> None:
    site.repository.branches["main"] = {"orders/a/one.yaml": "1", "orders/b/two.yaml": "2", "ordersx/c.yaml": "3"}
    assert sorted(site.forge.files("orders", "main")) == ["orders/a/one.yaml", "orders/b/two.yaml"]
    assert site.forge.files("none", "main") == []


@pytest.mark.parametrize(
    ("reply", "message", "retryable"),
    [
        (Reply(401), "refuses the token", False),
        (Reply(403), "may not do this", False),
        (Reply(409), "was changed at the same time", True),
        (Reply(429, b"", {"Retry-After": "7"}), "try again in 7 seconds", True),
        (Reply(429, b"", {"Retry-After": "<script>"}), "try again later", True),
        (Reply(500), "answers 500", True),
        (Reply(301, b"", {"Location": "http://127.0.0.1:1/"}), "has moved", False),
        (Reply(200, b"<html>"), "does not answer with JSON", False),
    ],
)
def test_a_refusal_says_what_to_do_and_not_the_token(site: Site, reply: Reply, message: str, retryable: bool) -> None:
    site.standin.fails = lambda _request: reply
    with pytest.raises(ForgeError, match=message) as error:
        propose(site.forge, PROPOSAL)
    assert error.value.retryable is retryable
    assert TOKEN not in str(error.value) and TOKEN not in repr(site.credentials)


def test_a_wrong_token_and_a_wrong_repository_are_named(site: Site) -> None:
    with pytest.raises(ForgeError, match="refuses the token"):
        propose(forge_of(site.kind, replace(site.credentials, token="other")), PROPOSAL)  # noqa: S106
    with pytest.raises(ForgeError, match="has no repository platform/none"):
        propose(forge_of(site.kind, replace(site.credentials, repository="platform/none")), PROPOSAL)


def test_a_forge_that_does_not_answer() -> None:
    with serving(STAND_INS["gitea"]()) as server:
        url = server.url
    with pytest.raises(ForgeError, match="check its address and the network") as error:
        propose(forge_of("gitea", Credentials(url, NAME, TOKEN)), PROPOSAL)
    assert error.value.retryable


def test_the_public_github_has_an_address_of_its_own_for_its_api() -> None:
    class Public(GitHub):
        @property
        def root(self) -> str:
            return self._root

    assert Public(Credentials("https://github.com/", "a/b", TOKEN)).root == "https://api.github.com/repos/a/b"
    assert Public(Credentials("https://git.example.com", "a/b", TOKEN)).root == "https://git.example.com/api/v3/repos/a/b"
