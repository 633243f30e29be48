# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks for each phase of the migration from ACM to direct access: whether its work is done. They change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Invalid, KubeError, NotFound
from ..registry.model import API_VERSION
from .acm.directory import AcmDirectory
from .acm.reader import AcmReader
from .acm.views import viewed
from .compare import cluster_differences, list_differences
from .connections import Connections
from .direct.directory import DirectDirectory
from .direct.reader import DirectReader
from .kinds import CLUSTER_VIEW, MANIFEST_WORK, RAMEN, VERSIONS, VRG
from .read_results import Listed, Unauthorized, Unreachable
from .settings import ACM, CONFIG_MAP, DIRECT, DrSettings, read_settings
from .stamps import EPOCH, REVISION, BadStamp, position

PREPARE, COMPARE, SWITCH, REMOVE = PHASES = ("prepare", "compare", "switch", "remove")
SHOWN = 10


@dataclass(frozen=True)
class Check:
    """One condition of a phase. The message of a failed one says what to do."""

    name: str
    passed: bool
    message: str


def check_phase(kube: Kube, namespace: str, phase: str) -> list[Check]:
    """The checks of a phase, with the settings in `namespace`."""
    found: list[Check] = []
    checks = _Checks(kube, namespace)
    for name, check in checks.of(phase):
        try:
            found += check()
        except KubeError as error:
            found.append(Check(name, False, str(error)))
    return found


class _Checks:
    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._settings: DrSettings = read_settings(kube, namespace)
        self._where = f"ConfigMap {namespace}/{CONFIG_MAP}"
        self._reading = Connections(kube, namespace, read_only=True)
        self._peers = self._reading.peers(self._settings)
        self._names = [cluster.name for cluster in self._peers.registry.clusters]
        self._dry_running = Connections(kube, namespace).peers(self._settings)

    def of(self, phase: str) -> list[tuple[str, Callable[[], list[Check]]]]:
        """The checks of a phase, each with the name to report if it cannot be done."""
        access, policy = ("access", self.access), ("policy", self.policies)
        stamps, works = ("stamps", self.stamps), (MANIFEST_WORK, lambda: self.leftovers(MANIFEST_WORK))
        return {
            PREPARE: [("settings", lambda: self.mode(ACM)), ("registry", self.registered), access, policy],
            COMPARE: [
                ("settings", lambda: self.mode(ACM, compare=True)),
                ("clusters", self.same_clusters),
                ("VolumeReplicationGroups", self.same_groups),
            ],
            SWITCH: [("settings", lambda: self.mode(DIRECT)), access, policy, stamps, works],
            REMOVE: [
                ("settings", lambda: self.mode(DIRECT, compare=False)),
                access,
                stamps,
                works,
                (CLUSTER_VIEW, lambda: self.leftovers(CLUSTER_VIEW)),
            ],
        }[phase]

    def mode(self, mode: str, *, compare: bool | None = None) -> list[Check]:
        wanted = {"dr_mode": mode} | ({} if compare is None else {"compare": str(compare).lower()})
        found = {"dr_mode": self._settings.mode, "compare": str(self._settings.compare).lower()}
        wrong = [f"{key}: {value}" for key, value in wanted.items() if found[key] != value]
        return [Check("settings", not wrong, f"Set {', '.join(wrong)} in {self._where}." if wrong else "as wanted")]

    def registered(self) -> list[Check]:
        policies = self._kube.list_all(API_VERSION, "DRPolicy")
        missing = sorted({name for item in policies for name in item["spec"].get("drClusters") or []} - set(self._names))
        text = f"Register {', '.join(missing)} in {self._peers.registry}." if missing else f"{len(self._names)} clusters"
        return [Check("registry", not missing, text)]

    def access(self) -> list[Check]:
        answers = self._peers.call_all(self._names, lambda kube: kube.version())
        return [_answered(f"access to {name}", answer) for name, answer in answers.items()]

    def policies(self) -> list[Check]:
        """The policy is in force where a group with an invalid stamp is refused. Nothing is stored: it is a dry run."""
        answers = self._dry_running.call_all(self._names, _is_guarded)
        checks = []
        for name, answer in answers.items():
            passed, text = answer is True, "in force"
            if not passed:
                text = (
                    answer.why
                    if isinstance(answer, Unreachable | Unauthorized)
                    else "Run kubectl apply -k extensions/eda/deploy/kubernetes/dr there."
                )
            checks.append(Check(f"policy on {name}", passed, text))
        return checks

    def same_clusters(self) -> list[Check]:
        direct, acm = DirectDirectory(self._kube, self._peers.registry).clusters(), AcmDirectory(self._hub()).clusters()
        # An ACM hub may manage clusters that take no part in disaster recovery.
        known = [cluster for cluster in acm if cluster.name in self._names]
        return [_without("clusters", cluster_differences(direct, known, (DIRECT, ACM)))]

    def same_groups(self) -> list[Check]:
        direct = DirectReader(self._peers).list(self._names, RAMEN, VRG)
        acm = AcmReader(self._hub(), create_views=False).list(self._names, RAMEN, VRG)
        return [_without("VolumeReplicationGroups", list_differences(direct, acm, (DIRECT, ACM)))]

    def stamps(self) -> list[Check]:
        problems, count = [], 0
        for name, answer in DirectReader(self._peers).list(self._names, RAMEN, VRG).items():
            if not isinstance(answer, Listed):
                problems.append(f"{name}: {answer.why}")
                continue
            count += len(answer.items)
            problems += [f"{name} {_named(item)} has no stamp yet" for item in answer.items if not _is_stamped(item)]
        return [_without("stamps", problems, f"{count} stamped")]

    def leftovers(self, kind: str) -> list[Check]:
        """The agents would go on to apply a ManifestWork, and revert what is written directly."""
        hub = self._hub()
        try:
            found = [item for item in hub.list_all(VERSIONS[kind], kind) if _is_for_a_group(item)]
        except NotFound:
            return [Check(kind, True, "The hub no longer serves it.")]
        return [_without(kind, [f"delete {_named(item)}" for item in found], "none left")]

    def _hub(self) -> Kube:
        return self._reading.hub(self._settings)


def _is_guarded(kube: Kube) -> bool:
    kube.create(_probe("1"), dry_run=True)  # what the policy accepts must be valid, or its refusal says nothing
    try:
        kube.create(_probe("x"), dry_run=True)
    except Invalid:
        return True
    return False


def _probe(number: str) -> Object:
    metadata = {"name": "openfleet-policy-check", "namespace": "default", "annotations": {EPOCH: number, REVISION: number}}
    spec = {"pvcSelector": {}, "replicationState": "secondary", "s3Profiles": ["none"]}
    return {"apiVersion": RAMEN, "kind": VRG, "metadata": metadata, "spec": spec}


def _answered(name: str, answer: object) -> Check:
    unknown = isinstance(answer, Unreachable | Unauthorized)
    return Check(name, not unknown, answer.why if isinstance(answer, Unreachable | Unauthorized) else str(answer))


def _without(name: str, problems: list[str], passed: str = "no differences") -> Check:
    shown = "; ".join(problems[:SHOWN]) + (f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else "")
    return Check(name, not problems, shown or passed)


def _is_stamped(item: Object) -> bool:
    try:
        return position(item) > (0, 0)
    except BadStamp:
        return False


def _is_for_a_group(item: Object) -> bool:
    if item["kind"] == CLUSTER_VIEW:
        return viewed(item).kind == VRG
    manifests: Iterable[Object] = ((item.get("spec") or {}).get("workload") or {}).get("manifests") or []
    return any(manifest.get("kind") == VRG for manifest in manifests)


def _named(item: Object) -> str:
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
