"""Claims of hosts on a real API server: all or none, never twice, released only when they have left the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.bench import host_claimants
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.claim_record import ClaimRecord, read_records
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease

from ..support import mortal
from ..support.agents import API_VERSION, CLAIM, CLAIMED_CLASS, CLASS, CLEANING, ZONE, Agents, agents_on, hosts
from ..support.in_process import act
from ..support.manifests import manifest
from ..support.samples import FAULT


@pytest.fixture
def agents(quick_hub: Access) -> Iterator[Agents]:
    with agents_on(quick_hub) as found:
        yield found


def claim(agents: Agents, cluster: str = "one", check: bool = False, **given: Any) -> dict[str, Any]:
    """A task for a cluster without an order; keywords with a number are classes."""
    counts = {name: value for name, value in given.items() if isinstance(value, int) and not isinstance(value, bool)}
    requests = [{"resourceClass": name, "numberOfNodes": count} for name, count in counts.items()]
    named = {"name": cluster, "namespace": agents.namespace, "provider": "hypershift", "kubeconfig": str(agents.hub.kubeconfig)}
    where = {} if "inventory" in given else {"agent_namespace": agents.namespace}
    more = {name: value for name, value in given.items() if name not in counts}
    return act("cluster_hosts", named | where | {"node_requests": requests} | more, check=check)


def written(agents: Agents) -> list[Any]:
    """What claims write of the Agents: all but the status, which the operator of the Agents writes meanwhile."""
    metadata = ("name", "labels", "annotations", "generation")
    return [[{name: item["metadata"].get(name) for name in metadata}, item["spec"]] for item in agents.all()]


def key(agents: Agents, cluster: str = "one") -> str:
    return f"{agents.namespace}.{cluster}"


def bind(agents: Agents, *names: str) -> None:
    for name in names:
        agents.patch(name, {"metadata": {"labels": {"agentMachineRef": name}}, "spec": {"clusterDeploymentName": {"name": "x"}}})


def unbind(agents: Agents, *names: str) -> None:
    for name in names:
        agents.patch(name, {"metadata": {"labels": {"agentMachineRef": None}}, "spec": {"clusterDeploymentName": None}})


def test_a_claimed_host_is_approved_named_and_selected_and_a_second_run_changes_nothing(agents: Agents) -> None:
    agents.discover(hosts(4, zones=2))
    predicted = claim(agents, check=True, fc430=2)
    assert predicted["changed"] and agents.claims() == agents.recorded() == {}
    answer = claim(agents, fc430=2)
    assert not answer.get("failed"), answer
    assert answer["changed"] and answer["hosts"] == predicted["hosts"] == {"fc430": ["host-000", "host-001"]}
    assert agents.claims() == agents.recorded() == {key(agents): ["host-000", "host-001"]}
    assert json.loads(answer["diff"]["after"]) == answer["hosts"]
    selector = answer["node_platforms"]["fc430"]["agent"]["agentLabelSelector"]["matchLabels"]
    assert selector == {CLAIM: key(agents), CLAIMED_CLASS: "fc430"}
    selected = agents.kube.list_all(API_VERSION, "Agent", agents.namespace, ",".join(f"{name}={value}" for name, value in selector.items()))
    assert [item["spec"] for item in selected] == [
        {"approved": True, "role": "worker", "hostname": f"one-fc430-{number}"} for number in range(2)
    ]
    assert answer["part"] == {"ready": True, "reason": "HostsClaimed", "message": "Hosts: 2 of the class fc430"}
    before = written(agents)
    assert not claim(agents, fc430=2)["changed"] and not claim(agents, check=True, fc430=2)["changed"]
    assert written(agents) == before


def test_what_was_changed_by_hand_is_restored(agents: Agents) -> None:
    agents.discover(hosts(2))
    claim(agents, fc430=2)
    agents.patch("host-001", {"spec": {"approved": False}, "metadata": {"labels": {CLAIMED_CLASS: None}}})
    assert claim(agents, check=True, fc430=2)["changed"]
    assert claim(agents, fc430=2)["changed"]
    assert agents.get("host-001")["spec"] == {"approved": True, "role": "worker", "hostname": "one-fc430-1"}
    assert not claim(agents, fc430=2)["changed"]


@pytest.mark.parametrize(
    ("wanted", "reason", "said"),
    [
        ({"fc430": 4}, "HostShortage", "1 of 4 hosts of the class fc430 are missing"),
        ({"fc430": 1, "fc640": 2}, "HostShortage", "1 of 2 hosts of the class fc640 are missing"),
        ({"fc430": 1, "fc999": 1}, "UnknownClass", "no bare-metal hosts of the class fc999"),
    ],
)
def test_without_enough_hosts_nothing_is_claimed(agents: Agents, wanted: dict[str, int], reason: str, said: str) -> None:
    agents.discover(hosts(3) | hosts(1, "fc640", start="big"))
    before = agents.all()
    answer = claim(agents, **wanted)
    assert (answer["failed"], answer["reason"], answer["retryable"]) == (True, reason, True)
    assert said in answer["msg"]
    assert agents.all() == before and agents.recorded() == {}
    claim(agents, fc430=2)
    answer = claim(agents, **{name: count + 5 for name, count in wanted.items()})
    assert answer["failed"] and agents.claims() == agents.recorded() == {key(agents): ["host-000", "host-001"]}, "what it had, it keeps"


def test_hosts_that_cannot_be_bound_are_not_claimed_and_dirty_ones_last(agents: Agents) -> None:
    agents.discover(hosts(5))
    bind(agents, "host-000")
    agents.patch("host-001", {"metadata": {"annotations": {FAULT: "disconnected"}}})
    agents.patch("host-002", {"metadata": {"labels": {CLEANING: "required"}}})

    def is_reported() -> bool:
        conditions = {item["type"]: item["status"] for item in agents.get("host-001")["status"]["conditions"]}
        return conditions["Connected"] == "False"

    until(is_reported, "host-001 is disconnected")
    assert claim(agents, fc430=2)["hosts"] == {"fc430": ["host-003", "host-004"]}
    assert claim(agents, "two", fc430=1, require_clean=True)["reason"] == "HostShortage"
    assert claim(agents, "two", fc430=1)["hosts"] == {"fc430": ["host-002"]}
    assert claim(agents, "three", fc430=1)["reason"] == "HostShortage"


def test_the_site_says_which_labels_a_class_has(agents: Agents) -> None:
    agents.discover(
        {
            "a": {"size": "small", "rack": "1"},
            "b": {"size": "small", "rack": "2"},
            "c": {"size": "large", "rack": "2"},
            "d": {"size": "small", "rack": "1"},
        }
    )
    classes = {"fc430": {"kind": "agent", "labels": {"size": "small"}}, "fc640": {"labels": {"size": "large"}}, "vm": {"kind": "vm"}}
    answer = claim(agents, fc430=2, fc640=1, classes=classes, failure_domain_label="rack")
    assert answer["hosts"] == {"fc430": ["a", "b"], "fc640": ["c"]}
    assert claim(agents, "two", vm=1, classes=classes)["reason"] == "UnknownClass"


def test_only_hosts_that_the_cluster_gave_up_are_released_after_they_left_it(agents: Agents) -> None:
    agents.discover(hosts(3))
    before = {agent["metadata"]["name"]: agent for agent in agents.all()}
    claim(agents, fc430=3)
    bind(agents, *before)
    answer = claim(agents, fc430=2)
    message = "Hosts that have to leave the cluster first: 1 of the class fc430"
    assert not answer["changed"] and answer["part"] == {"ready": False, "reason": "HostsLeaving", "message": message}
    assert agents.recorded()[key(agents)] == sorted(before)
    unbind(agents, "host-001")
    assert claim(agents, check=True, fc430=2)["released"] == ["host-001"] and len(agents.claims()[key(agents)]) == 3
    answer = claim(agents, fc430=2)
    assert answer["changed"] and answer["part"]["ready"] and answer["released"] == ["host-001"]
    assert agents.claims() == agents.recorded() == {key(agents): ["host-000", "host-002"]}
    released = agents.get("host-001")
    assert released["spec"] == before["host-001"]["spec"]
    assert released["metadata"]["labels"] == {CLASS: "fc430", ZONE: "rack-0", CLEANING: "required"}
    assert not any(name.startswith("cloudkit") for name in released["metadata"].get("annotations") or {})
    assert claim(agents, fc430=3)["hosts"] == {"fc430": ["host-000", "host-002", "host-001"]}
    assert agents.get("host-001")["spec"]["hostname"] == "one-fc430-1", "the free number"


def test_all_hosts_are_released_and_marked_for_cleaning_once_they_left(agents: Agents) -> None:
    agents.discover(hosts(2) | hosts(1, "fc640", start="big"))
    claim(agents, fc430=2, fc640=1)
    claim(agents, "two", fc430=0)
    bind(agents, "host-000")
    predicted = claim(agents, check=True, state="absent")
    answer = claim(agents, state="absent")
    assert predicted["released"] == answer["released"] == ["big-000", "host-001"]
    assert (answer["part"]["reason"], answer["hosts"]) == ("HostsLeaving", {"fc430": ["host-000"]})
    assert agents.claims() == agents.recorded() == {key(agents): ["host-000"]}
    unbind(agents, "host-000")
    answer = claim(agents, state="absent")
    assert (answer["part"]["ready"], answer["changed"], answer["hosts"]) == (True, True, {})
    assert agents.claims() == agents.recorded() == {}
    assert all(agent["metadata"]["labels"][CLEANING] == "required" and not agent["spec"]["approved"] for agent in agents.all())
    assert not claim(agents, state="absent")["changed"]


def test_a_host_that_goes_missing_is_reported_and_one_that_is_gone_replaced(agents: Agents) -> None:
    agents.discover(hosts(3))
    claim(agents, fc430=2)
    agents.patch("host-000", {"metadata": {"annotations": {FAULT: "disconnected"}}})

    def part() -> Any:
        return claim(agents, fc430=2)["part"]

    until(lambda: not part()["ready"], "it is reported")
    assert part() == {"ready": False, "reason": "HostMissing", "message": "Host host-000 of the class fc430 is not connected"}
    agents.delete("host-000")
    replaced = claim(agents, fc430=2)
    assert replaced["hosts"] == {"fc430": ["host-001", "host-002"]} and replaced["part"]["ready"]
    assert replaced["part"]["message"] == "Hosts: 2 of the class fc430; no longer in the inventory: host-000"
    assert agents.recorded() == {key(agents): ["host-001", "host-002"]}


def test_a_lost_record_is_made_again_from_the_marks(agents: Agents) -> None:
    agents.discover(hosts(3))
    claim(agents, fc430=2)
    name = f"host-claims-agents-{agents.namespace}"
    agents.kube.delete(agents.kube.get("v1", "ConfigMap", name, lease.SITE_NAMESPACE))
    assert claim(agents, "two", fc430=2)["reason"] == "HostShortage"
    assert claim(agents, fc430=3)["hosts"] == {"fc430": ["host-000", "host-001", "host-002"]}
    assert len(agents.recorded()[key(agents)]) == 3


def test_a_run_without_the_lock_claims_nothing(agents: Agents) -> None:
    """Also where another one has acquired the lock since, and has claimed nothing yet."""
    agents.discover(hosts(2))
    held = lease.acquire(agents.kube, agents.namespace, "one", "first")
    lease.release(agents.kube, held)
    following = lease.acquire(agents.kube, agents.namespace, "one", "second")
    late = claim(agents, fc430=1, lock=held.as_dict())
    assert (late["failed"], late["reason"]) == (True, "LockLost")
    assert agents.claims() == agents.recorded() == {}
    claim(agents, fc430=2, lock=following.as_dict())
    assert claim(agents, fc430=1, lock=held.as_dict())["reason"] == "LockLost"
    assert claim(agents, state="absent", lock=held.as_dict())["reason"] == "LockLost"
    assert len(agents.claims()[key(agents)]) == 2
    lease.release(agents.kube, following)


def test_a_run_that_dies_at_any_write_is_simply_run_again(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    agents.discover(hosts(3))
    monkeypatch.setattr(Kube, "connect", mortal.connect)

    def all_deaths(run: Callable[[], object]) -> int:
        """Die at the first write, run again and die at the second, and so on."""
        deaths = 0
        while mortal.dies_at(deaths + 1, run):
            deaths += 1
            state = lease.read(agents.kube, agents.namespace, "one")
            lease.release_held(agents.kube, agents.namespace, "one", state.holder)
            claimed = {name for names in agents.claims().values() for name in names}
            assert claimed <= {name for names in agents.recorded().values() for name in names}, "what is marked is recorded"
        return deaths

    assert all_deaths(lambda: claim(agents, fc430=2)) >= 3
    assert agents.claims() == agents.recorded() == {key(agents): ["host-000", "host-001"]}
    assert all_deaths(lambda: claim(agents, state="absent")) >= 3
    assert agents.claims() == agents.recorded() == {}


def test_a_claim_that_conflicts_is_chosen_again(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another cluster claims between the choice and the write, and then releases what would be missing."""
    agents.discover(hosts(2))
    write, others = ClaimRecord.write, iter([{"fc430": 2}, {"state": "absent"}])

    def interrupted(record: ClaimRecord, *arguments: Any) -> None:
        if (given := next(others, None)) is not None:
            monkeypatch.setattr(ClaimRecord, "write", write)
            assert not claim(agents, "two", **given).get("failed")
            monkeypatch.setattr(ClaimRecord, "write", interrupted)
        write(record, *arguments)

    monkeypatch.setattr(ClaimRecord, "write", interrupted)
    assert claim(agents, fc430=2)["reason"] == "HostShortage"
    monkeypatch.setattr(ClaimRecord, "write", write)
    assert agents.recorded() == {key(agents, "two"): ["host-000", "host-001"]}


@pytest.mark.soak
def test_many_that_claim_at_once_and_are_killed_lose_no_host_and_share_none(agents: Agents, soak: int) -> None:
    clusters, each = 12 * soak, 5
    agents.discover(hosts(clusters * each, zones=3))
    names = [f"c{number}" for number in range(clusters)]
    # After the write of the lock, of the claim, of one of the hosts: each is some run's last.
    dying = {name: number % (each + 2) + 1 for number, name in enumerate(names[::2])}
    given = {
        "kubeconfig": str(agents.hub.kubeconfig),
        "namespace": agents.namespace,
        "wanted": {"fc430": each},
        "clusters": {name: dying.get(name) for name in names},
    }
    command = [sys.executable, "-m", host_claimants.__name__]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (sorted(answer["killed"]), answer["failed"]) == (sorted(dying), []), done.stderr
    claims = agents.claims()
    assert claims == agents.recorded(), dying
    assert {owner: len(found) for owner, found in claims.items()} == {key(agents, name): each for name in names}
    assert claim(agents, "late", fc430=1)["reason"] == "HostShortage"


def test_a_list_of_hosts_is_an_inventory_too(agents: Agents) -> None:
    listed = [{"name": f"blade-{number}", "resource_class": "blade", "failure_domain": f"rack-{number % 2}"} for number in range(3)]
    options: dict[str, Any] = {"inventory": f"lab_{agents.namespace}", "hosts": listed}
    answer = claim(agents, blade=2, **options)
    assert answer["hosts"] == {"blade": ["blade-0", "blade-1"]} and answer["node_platforms"] == {}
    assert not claim(agents, blade=2, **options)["changed"]
    assert claim(agents, "two", blade=2, **options)["reason"] == "HostShortage"
    listed[0]["in_use"] = True
    answer = claim(agents, blade=0, **options)
    assert (answer["part"]["reason"], answer["released"], answer["hosts"]) == ("HostsLeaving", ["blade-1"], {"blade": ["blade-0"]})
    listed[0]["in_use"] = False
    assert claim(agents, state="absent", **options)["part"]["ready"]
    assert claim(agents, "two", blade=3, **options)["part"]["ready"]
    assert claim(agents, "two", state="absent", **options)["part"]["ready"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agent_namespace": "", "fc430": 1}, "agent_namespace"),
        ({"fc430": -1}, "numberOfNodes of the class fc430 is negative"),
    ],
)
def test_bad_input_has_one_message(agents: Agents, given: dict[str, Any], said: str) -> None:
    answer = claim(agents, **given)
    assert answer["failed"] and said in answer["msg"]


def test_the_shipped_roles_are_enough_for_claims(agents: Agents) -> None:
    """As a user with the roles of the folder `hosts`, in the namespace of the Agents, and with those for Leases; also to watch them."""
    roles = [manifest(f"hosts/{name}_role") for name in ("agents", "claims")] + [manifest("role")]
    roles[0]["metadata"]["namespace"] = agents.namespace
    subject = {"kind": "User", "name": f"engine-{agents.namespace}", "apiGroup": "rbac.authorization.k8s.io"}
    for role in roles:
        role["metadata"]["name"] += f"-{agents.namespace}"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]}
        binding = {**role, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]}
        agents.hub.apply(role, {key: value for key, value in binding.items() if key != "rules"})
    agents.discover(hosts(1))
    engine = {"impersonate_user": subject["name"]}
    until(lambda: not claim(agents, fc430=1, **engine).get("failed"), "the server knows the roles")
    assert claim(agents, state="absent", **engine)["part"]["ready"]
    assert agents.claims() == agents.recorded() == {}
    kube = Kube.connect({"kubeconfig": str(agents.hub.kubeconfig), **engine})
    assert read_records(kube, lease.SITE_NAMESPACE)
    listed = kube.list_all(API_VERSION, "Agent", agents.namespace, CLAIM)
    watch = kube.watch(API_VERSION, "Agent", agents.namespace, since=listed.resource_version, seconds=1)
    assert {event.type for event in watch} <= {"BOOKMARK", "MODIFIED"}, "the operator of the Agents may write their status meanwhile"
