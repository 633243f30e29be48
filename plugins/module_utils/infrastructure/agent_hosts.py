# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Agents of a namespace as an inventory of hosts. A claim marks an Agent by labels, which the NodePool of its class selects.

HyperShift binds an Agent that its NodePool selects, that is approved, connected and validated, and unbinds one that the NodePool gives up.
What the claim changes in the spec, approval, hostname and role, is stored in an annotation, and restored with the release. A released
Agent is labelled for cleaning; a site removes that label when the host is clean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import Conflict, KubeError, NotFound
from ..kube.kinds import register
from ..lock.fenced_writer import FencedWriter, holds
from .claim_record import ClaimRecord
from .host_choice import Host, Names
from .host_claims import Inventory, described

GROUP, KIND = "agent-install.openshift.io", "Agent"
API_VERSION = f"{GROUP}/v1beta1"
MACHINE_LABEL = "agentMachineRef"  # of HyperShift's Agent platform: the machine that has the Agent
FAILURE_DOMAIN = "topology.kubernetes.io/zone"
LANES = 4
NAME_LIMIT = 63
ROLE = "worker"
RECORD_PREFIX = "agents-"
UNKNOWN = "unknown"  # the class of a claimed host that belongs to none

Item = TypeVar("Item")

register(GROUP, KIND, "agents")


class NoInventory(KubeError):
    """The site has not said where its Agents are."""

    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The settings of the site have no agent_namespace, the namespace of its bare-metal hosts: ask its operator to set it."
        )


@dataclass(frozen=True)
class AgentLabels:
    """The labels and annotations on Agents, in the API group of orders."""

    group: str
    failure_domain: str = FAILURE_DOMAIN

    @property
    def claim(self) -> str:
        """The cluster that has the Agent: the uid of its order."""
        return f"{self.group}/claim"

    @property
    def claimed_class(self) -> str:
        return f"{self.group}/claimed-class"

    @property
    def resource_class(self) -> str:
        """Set by the site, where its settings have no other labels for a class."""
        return f"{self.group}/resource-class"

    @property
    def cleaning(self) -> str:
        """Set with a release, and removed by the site when the host is clean."""
        return f"{self.group}/cleaning"

    @property
    def before(self) -> str:
        """An annotation with the fields of the spec that the claim has changed."""
        return f"{self.group}/before-claim"

    @property
    def token(self) -> str:
        return f"{self.group}/lock-token"


@dataclass
class AgentInventory(Inventory):
    """The Agents of `namespace` as hosts for one cluster, whose mark is `key`.

    `classes` has the labels that a host of each class has. `owner_labels` name the cluster to people. Hostnames begin with
    `cluster_name`.
    """

    kube: Kube
    namespace: str
    key: str
    cluster_name: str
    labels: AgentLabels
    classes: Mapping[str, Mapping[str, str]]
    owner_labels: Mapping[str, str]
    writer: FencedWriter
    require_clean: bool = False
    check_mode: bool = False

    def __post_init__(self) -> None:
        self.name = record_name(self.namespace)
        self._agents: dict[str, Object] = {}

    def selector(self, resource_class: str) -> Object:
        """The labels by which a NodePool selects exactly the claimed hosts of the class."""
        return {"matchLabels": {self.labels.claim: self.key, self.labels.claimed_class: resource_class}}

    # Reads

    def marked(self) -> list[Host]:
        return self._listed(f"{self.labels.claim}={self.key}")

    def unmarked(self) -> list[Host]:
        return self._listed(f"!{self.labels.claim}")

    def _listed(self, selector: str) -> list[Host]:
        try:
            found = self.kube.list_all(API_VERSION, KIND, self.namespace, selector)
        except NotFound as error:
            raise KubeError(
                f"The hub has no Agents: {error} Install the infrastructure operator, or set another adapter for hosts."
            ) from error
        self._agents |= {agent["metadata"]["name"]: agent for agent in found}
        return [self._host(agent) for agent in found]

    def _host(self, agent: Object) -> Host:
        labels = agent["metadata"].get("labels") or {}
        is_clean = self.labels.cleaning not in labels
        classes = frozenset(name for name, wanted in self.classes.items() if wanted.items() <= labels.items())
        is_marked = labels.get(self.labels.claim) == self.key
        return Host(
            agent["metadata"]["name"],
            classes,
            labels.get(self.labels.failure_domain, ""),
            is_free=_can_be_bound(agent) and (is_clean or not self.require_clean),
            is_clean=is_clean,
            in_use=in_use(agent),
            problem=problem(agent),
            # Where the label was removed by hand, the host is one of its own class.
            claimed_class=labels.get(self.labels.claimed_class) or min(classes, default=UNKNOWN) if is_marked else "",
        )

    def is_settled(self, host: Host) -> bool:
        agent = self._agents[host.name]
        hostname = agent["spec"].get("hostname")
        return bool(hostname) and holds(agent, self._mark(host.claimed_class, hostname), merged=True)

    # Writes

    def mark(self, hosts: Names) -> list[str]:
        todo = [(each, name) for name, names in hosts.items() for each in names]
        hostnames = self._hostnames(hosts)
        marked = self._in_lanes(lambda item: self._mark_one(item[0], item[1], hostnames[item[0]]), todo)
        return [name for (name, _class), is_marked in marked if not is_marked]

    def _mark_one(self, name: str, resource_class: str, hostname: str) -> bool:
        """Whether the host has the mark: one that was deleted, or has that of another cluster, has not."""

        def attempt() -> bool:
            agent = self._current(name)
            if agent is None or _claim_of(agent, self.labels) not in ("", self.key):
                return False
            mark = self._mark(resource_class, hostname)
            if holds(agent, mark, merged=True):
                return True
            before = (agent["metadata"].get("annotations") or {}).get(self.labels.before) or json.dumps(_changed_fields(agent))
            mark["metadata"]["annotations"] = {self.labels.token: str(self.writer.token), self.labels.before: before}
            return self._patch(agent, mark)

        return retry_on_conflict(attempt)

    def _mark(self, resource_class: str, hostname: str) -> Object:
        labels = {self.labels.claim: self.key, self.labels.claimed_class: resource_class, **self.owner_labels}
        return {"metadata": {"labels": labels}, "spec": {"approved": True, "hostname": hostname, "role": ROLE}}

    def unmark(self, names: Iterable[str]) -> list[str]:
        return [name for name, is_released in self._in_lanes(self._unmark_one, names) if not is_released]

    def _unmark_one(self, name: str) -> bool:
        """Whether the host is released: one that is in use is not, one that no longer exists is."""

        def attempt() -> bool:
            agent = self._current(name)
            if agent is None or _claim_of(agent, self.labels) != self.key:
                return True
            if in_use(agent):
                return False
            before = _stored(agent, self.labels.before)
            gone = dict.fromkeys((self.labels.claim, self.labels.claimed_class, *self.owner_labels))
            metadata = {
                "labels": {**gone, self.labels.cleaning: "required"},
                "annotations": dict.fromkeys((self.labels.token, self.labels.before)),
            }
            return self._patch(agent, {"metadata": metadata, "spec": before})

        return retry_on_conflict(attempt)

    def _in_lanes(self, work: Callable[[Item], bool], items: Iterable[Item]) -> list[tuple[Item, bool]]:
        """Do the work for all items over a few connections: a new one costs more than the write of a host."""
        todo = list(items)
        done: list[tuple[Item, bool]] = []
        for result in self.kube.in_parallel(lambda lane: [(item, work(item)) for item in todo[lane::LANES]], range(min(LANES, len(todo)))):
            if isinstance(result, KubeError):
                raise result
            done += result
        return done

    def _current(self, name: str) -> Object | None:
        """The Agent as it was listed; after a conflict as it is now, if this run still holds the lock."""
        if agent := self._agents.pop(name, None):
            return agent
        self.writer.verify()
        return self.kube.find(API_VERSION, KIND, name, self.namespace)

    def _patch(self, agent: Object, changes: Object) -> bool:
        self.changes += 1
        if not self.check_mode:
            self.writer.ensure_held()
            try:
                self.kube.patch(agent, changes)
            except NotFound:
                raise Conflict(f"{KIND} {self.namespace}/{agent['metadata']['name']} was deleted meanwhile.") from None
        return True

    def _hostnames(self, hosts: Names) -> dict[str, str]:
        """A name for each host: the one that it has of this cluster, or the first free number of its class."""
        hostnames: dict[str, str] = {}
        for name, names in hosts.items():
            start = f"-{name.lower().replace('_', '-').replace('.', '-')}-"
            start = f"{self.cluster_name[: NAME_LIMIT - len(start) - 5]}{start}"
            known = {each: str((self._agents.get(each) or {}).get("spec", {}).get("hostname") or "") for each in names}
            kept = {each: known[each] for each in names if known[each].startswith(start) and known[each][len(start) :].isdecimal()}
            numbers = (number for number in range(len(names) * 2) if f"{start}{number}" not in kept.values())
            hostnames |= {each: kept.get(each) or f"{start}{next(numbers)}" for each in names}
        return hostnames


def lost_agents(kube: Kube, site_namespace: str, namespace: str, labels: AgentLabels, key: str = "") -> dict[str, str]:
    """For each cluster with claimed hosts that do not work, by its key: which, and why. With a `key`, for that cluster."""
    claims = ClaimRecord(kube, site_namespace, record_name(namespace)).read()
    claims = {each: claim for each, claim in claims.items() if key in ("", each)}
    selector = f"{labels.claim}={key}" if key else labels.claim
    agents = {agent["metadata"]["name"]: agent for agent in kube.list_all(API_VERSION, KIND, namespace, selector)}
    lost = {
        key: [
            f"{each} of the class {name} {problem(agents[each]) if each in agents else 'no longer exists'}"
            for name, names in claim.hosts.items()
            for each in names
            if each not in agents or problem(agents[each])
        ]
        for key, claim in claims.items()
    }
    return {key: described(faults) for key, faults in lost.items() if faults}


def count_hosts(agents: Iterable[Object], labels: AgentLabels, classes: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[int, int]]:
    """The hosts by class: all that work, and those that a cluster can claim. `classes` has the labels of the hosts of each class.

    Without `classes`, those are counted that Agents name in their label.
    """
    working = [agent for agent in agents if not problem(agent)]
    if not classes:
        found = {(agent["metadata"].get("labels") or {}).get(labels.resource_class) for agent in working}
        classes = {name: {labels.resource_class: name} for name in sorted(filter(None, found))}
    counts: dict[str, tuple[int, int]] = {}
    for name, wanted in classes.items():
        mine = [agent for agent in working if wanted.items() <= (agent["metadata"].get("labels") or {}).items()]
        counts[name] = len(mine), sum(_can_be_bound(agent) and not _claim_of(agent, labels) for agent in mine)
    return counts


def record_name(namespace: str) -> str:
    return f"{RECORD_PREFIX}{namespace}"


def agent_namespace(inventory: str) -> str:
    """The namespace of the Agents of an inventory; empty for one without Agents."""
    return inventory.removeprefix(RECORD_PREFIX) if inventory.startswith(RECORD_PREFIX) else ""


def in_use(agent: Object) -> bool:
    """Whether a machine has the Agent, or it is bound to a cluster."""
    return MACHINE_LABEL in (agent["metadata"].get("labels") or {}) or bool(agent["spec"].get("clusterDeploymentName"))


def problem(agent: Object) -> str:
    """Why a claimed Agent does not work; empty where it does. Validations may fail for a while in any installation."""
    if "deletionTimestamp" in agent["metadata"]:
        return "is being deleted"
    if _condition(agent, "Connected") == "False":
        return "is not connected"
    conditions = (agent.get("status") or {}).get("conditions") or []
    has_failed = any((item.get("type"), item.get("reason")) == ("Installed", "InstallationFailed") for item in conditions)
    return "could not be installed" if has_failed else ""


def _can_be_bound(agent: Object) -> bool:
    """Whether HyperShift takes the Agent once it is approved. One that was just released may still be unbinding."""
    if in_use(agent) or "deletionTimestamp" in agent["metadata"]:
        return False
    return {kind: _condition(agent, kind) for kind in ("Connected", "Validated", "Bound")} == {
        "Connected": "True",
        "Validated": "True",
        "Bound": "False",
    }


def _condition(agent: Object, kind: str) -> str:
    conditions = (agent.get("status") or {}).get("conditions") or []
    return next((str(item.get("status")) for item in conditions if item.get("type") == kind), "Unknown")


def _claim_of(agent: Object, labels: AgentLabels) -> str:
    return str((agent["metadata"].get("labels") or {}).get(labels.claim) or "")


def _changed_fields(agent: Object) -> dict[str, Any]:
    return {name: agent["spec"].get(name) for name in ("approved", "hostname", "role")}


def _stored(agent: Object, annotation: str) -> dict[str, Any]:
    """The fields of the spec before the claim; without a readable annotation an Agent that is not approved."""
    text = (agent["metadata"].get("annotations") or {}).get(annotation)
    try:
        stored = json.loads(text or "")
    except ValueError:
        stored = {}
    fields = {"approved": False, "hostname": None, "role": ""} | (stored if isinstance(stored, dict) else {})
    return {name: fields[name] for name in ("approved", "hostname", "role")}
