"""The shipped roles of disaster recovery: each permission is needed, and one that is missing is named where a person sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import informer, peer_watch, work_queue
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.registry_health import RegistryHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.connections import Connections
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.deployer import DirectDeployer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.reader import DirectReader
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.drpc_status import FINALIZER
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.drpc_status import release as release_copy
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Deployed, ObjectRef, Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DR_CLUSTER, DRPC, RAMEN, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.settings import TIMEOUT, DrSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LEADER, acquire, release
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients

from ..support.dr_controllers import running, until
from ..support.dr_run import STORAGE, Recovery, recovery
from ..support.kubeconfigs import create_token, put_kubeconfig, service_account
from ..support.manifests import manifest
from ..support.permissions import Permission, Recorder, permissions_of, permissions_used, without
from ..support.replication import Protected

RBAC = "rbac.authorization.k8s.io"
SITE, RAMEN_SYSTEM = "the site's namespace", "ramen-system"
# The roles of each account, by the namespace that they count in.
ROLES = {
    "controller": {"": "dr/controller_cluster_role", SITE: "dr/controller_role", RAMEN_SYSTEM: "dr/ramen_role"},
    "peer": {"": "dr/peer_cluster_role"},
}
KINDS = {
    "configmaps": "ConfigMap",
    "clusterregistries": "ClusterRegistry",
    "deployments": "Deployment",
    "drclusters": "DRCluster",
    "drplacementcontrols": "DRPlacementControl",
    "drpolicies": "DRPolicy",
    "namespaces": "Namespace",
    "secrets": "Secret",
    "statefulsets": "StatefulSet",
    "volumereplicationgroups": "VolumeReplicationGroup",
}
LIFE_SECONDS = 600.0  # what a busy machine may need
RETRY_SECONDS = 0.5  # each permission costs a retry, and the delays of retries grow
Missing = tuple[str, Permission]  # with the namespace that the role counts in


def text_of(missing: Missing, account: str, site_namespace: str) -> str:
    """How a message names a permission. Nothing that another cluster answers is repeated: there it is the request."""
    namespace, permission = missing
    if account == "controller":
        where = f'.* in the namespace "{site_namespace if namespace == SITE else namespace}"' if namespace else ""
        return f'cannot {permission.verb} resource "{permission.resource}"{where}'
    verb = {"update": "replace"}.get(permission.verb, permission.verb)
    return f"{verb} {KINDS.get(permission.resource, permission.resource)}.*no permission"


class Account:
    """One account on one cluster. Each permission is refused, by the server, until a message has named it."""

    def __init__(self, dr: Recovery, access: Access, name: str, actor: str) -> None:
        self.recorder = Recorder(access)
        self.recorder.credential = actor
        self.recorder.act_as = self._act_as
        self._name = name
        roles = {namespace: manifest(role) for namespace, role in ROLES[name].items()}
        self.open: set[Missing] = {(namespace, each) for namespace, role in roles.items() for each in permissions_of(role)}
        self._site_namespace = dr.namespace
        self._mutex = threading.Lock()
        whole = roles[""] | {"rules": [rule for role in roles.values() for rule in role["rules"]]}
        self.items = []
        for permission in sorted(permissions_of(whole)):
            user = self.user(permission)
            self.items.append(without(whole, permission) | {"metadata": {"name": user}})
            self.items.append(_binding(user, user, {"kind": "User", "name": user, "apiGroup": RBAC}))

    def user(self, permission: Permission) -> str:
        return f"{self._site_namespace}-{self._name}-without-{permission.verb}-{permission.resource.replace('/', '-')}"

    def note(self, text: str) -> None:
        """What was reported to a person. A permission that it names is there from now on."""
        with self._mutex:
            self.open = {missing for missing in self.open if not re.search(text_of(missing, self._name, self._site_namespace), text)}

    def _act_as(self, method: str, path: str, _body: bytes) -> str:
        address = urlsplit(path)
        needed = permissions_used(method, address.path, dict(parse_qsl(address.query)), 200)
        namespace = RAMEN_SYSTEM if f"/namespaces/{RAMEN_SYSTEM}/" in path else ""
        with self._mutex:
            refused = [each for where, each in self.open if each in needed and (where == RAMEN_SYSTEM) == (namespace == RAMEN_SYSTEM)]
        return self.user(refused[0]) if refused else ""


def _binding(name: str, role: str, subject: dict[str, str]) -> Object:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    about = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    return about | {"roleRef": reference, "subjects": [subject]}


class Site:
    """Two clusters whose accounts are recorded, and all that was reported to a person."""

    def __init__(self, dr: Recovery, caplog: pytest.LogCaptureFixture) -> None:
        self.dr = dr
        self._caplog = caplog
        self._read = 0
        self.accounts: dict[tuple[str, str], Account] = {}
        self.reported: list[str] = []

    def note(self) -> None:
        """Read what was logged since the last time, and what the copies show."""
        texts, self.reported = self.reported, []
        logged = self._caplog.records[self._read :]
        self._read += len(logged)
        texts += [record.getMessage() for record in logged]
        for site in self.dr.sites:
            status = self.dr.status(site)
            texts += [item["message"] for item in status.get("conditions", []) if item["type"] == "Waiting"]
        for text in texts:
            for account in self.accounts.values():
                account.note(text)

    @property
    def open(self) -> dict[str, set[Missing]]:
        """What nothing has asked for on either cluster, or no message has named."""
        return {
            name: set.intersection(*(account.open for (_site, each), account in self.accounts.items() if each == name)) for name in ROLES
        }


@pytest.fixture
def site(
    application: Protected, bucket: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    monkeypatch.setattr(work_queue, "LAST_RETRY_SECONDS", RETRY_SECONDS)
    monkeypatch.setattr(informer, "LAST_RETRY_SECONDS", RETRY_SECONDS)
    monkeypatch.setattr(peer_watch, "REFRESH_SECONDS", RETRY_SECONDS)
    with recovery(application, bucket) as dr, contextlib.ExitStack() as stack:
        created = Site(dr, caplog)
        for name, access in dr.sites.items():
            items = _actor(access, dr.namespace)
            token = create_token(access.kube, dr.namespace, "actor")
            for account in ROLES:
                added = created.accounts[name, account] = Account(dr, access, account, token)
                stack.enter_context(added.recorder.running())
                items += added.items
            listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            stack.callback(access.kubectl, "delete", "-f", "-", "--wait=false", stdin=listed)
            access.kubectl("create", "-f", "-", stdin=listed)
        for access in dr.sites.values():
            for peer in dr.sites:
                content = _through(dr.peer_kubeconfig(peer), created.accounts[peer, "peer"].recorder)
                put_kubeconfig(access.kube, dr.namespace, f"{peer}-kubeconfig", content)
        yield created


def _actor(access: Access, namespace: str) -> list[Object]:
    """An account that may act as any user."""
    access.kube.create(service_account(namespace, "actor"))
    return [_binding(f"{namespace}-actor", "cluster-admin", {"kind": "ServiceAccount", "name": "actor", "namespace": namespace})]


def _through(content: Object, recorder: Recorder) -> Object:
    content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{recorder.port}"}
    return content


def test_each_permission_is_needed_and_a_missing_one_is_named(site: Site) -> None:
    dr = site.dr
    for name in dr.sites:
        dr.application.place(name, replicas=1 if name == "east" else 0)
        dr.application.place_component(name, "StatefulSet", "app-stateful", 1 if name == "east" else 0)

    def kubernetes(name: str) -> dict[str, Any]:
        return {"kubeconfig": _through(dr.kubeconfig(name), site.accounts[name, "controller"].recorder)}

    emitted: list[list[Event]] = []

    def listen() -> None:
        """What was logged since the last time, what the events report, and what the copies show."""
        for event in [event for events in emitted for event in events if event["type"] == "placement_reconciled"]:
            site.reported += event["problems"] + [wait["message"] for wait in event["waits"]]
        site.note()

    def shows(name: str, phase: str) -> bool:
        listen()
        status = dr.status(name)
        return (status.get("phase"), status.get("progression")) == (phase, "Completed")

    def fences(phase: str) -> bool:
        listen()
        found = dr.sites["west"].kube.get(RAMEN, DR_CLUSTER, _other_cluster(dr)["metadata"]["name"])
        return bool(found.get("status", {}).get("phase") == phase)

    def is_deleted() -> bool:
        listen()
        return not dr.has_drpc("east") and not dr.has_drpc("west")

    async def life() -> None:
        east, west = (running(dr, name, kubernetes=kubernetes(name)) for name in ("east", "west"))
        async with east as of_east, west as of_west:
            emitted.extend([of_east, of_west])
            dr.protect("east")
            await until(lambda: shows("east", "Deployed") and shows("west", "Deployed"), "the deployment", LIFE_SECONDS)
            dr.ask("west", action="Failover", failoverCluster="west")
            await until(lambda: shows("west", "FailedOver") and shows("east", "FailedOver"), "the failover", LIFE_SECONDS)
            assert dr.application.replicas("west") == {"app": 1, "app-stateful": 1}, "a refused one is started later"
            assert dr.application.replicas("east") == {"app": 0, "app-stateful": 0}
            for wanted, phase in (("Fenced", "Fenced"), ("Unfenced", "Unfenced")):
                _fence(dr, wanted)
                await until(lambda phase=phase: fences(phase), f"the cluster is {phase}", LIFE_SECONDS)  # type: ignore[misc]
            dr.sites["east"].kube.delete(dr.drpc("east"))
            await until(is_deleted, "the end", LIFE_SECONDS)

    try:
        asyncio.run(life())
        _use_directly(site, kubernetes("east"))
    finally:
        dr.sites["west"].kube.delete(_other_cluster(dr))
    _check_health(site, kubernetes("east"))
    assert site.open == {"controller": set(), "peer": set()}, "nothing needs these, or no message names them"


def _other_cluster(dr: Recovery) -> Object:
    """A DRCluster of no member: its fence affects no application."""
    spec = {"s3ProfileName": "none", "cidrs": ["10.0.1.0/24"]}
    metadata = {"name": f"{dr.namespace}-other", "annotations": STORAGE}
    return {"apiVersion": RAMEN, "kind": DR_CLUSTER, "metadata": metadata, "spec": spec}


def _fence(dr: Recovery, wanted: str) -> None:
    item = _other_cluster(dr)
    dr.sites["west"].kube.apply(item | {"spec": item["spec"] | {"clusterFence": wanted}}, force=True)


def _check_health(site: Site, kubernetes: dict[str, Any]) -> None:
    """What the checks of registered clusters need, which one of several processes makes. Each attempt finds one permission."""
    kube, namespace = Kube.connect(kubernetes), site.dr.namespace
    for _attempt in range(8):
        try:
            lock = acquire(kube, namespace, "cluster-registry-health", "test", kind=LEADER, site=namespace)
            release(kube, lock)
        except KubeError as error:
            site.reported.append(str(error))
        RegistryHealth(kube, namespace, 60).check()
        site.note()


def _use_directly(site: Site, kubernetes: dict[str, Any]) -> None:
    """What the life of a workload whose namespaces exist does not need: the checks of the registry and of a migration, a new namespace."""
    dr, name = site.dr, f"{site.dr.namespace}-new"
    kube = Kube.connect(kubernetes)
    peers, clients = Connections(kube, dr.namespace).peers(DrSettings()), ClusterClients(kube, dr.namespace, TIMEOUT)
    item = {"apiVersion": RAMEN, "kind": VRG, "metadata": {"name": "app", "namespace": name}, "spec": dict(_SPEC)}
    try:
        for _attempt in range(5):
            outcome = DirectDeployer(peers).apply("west", item, Stamp("uid", 1, 1))
            site.reported += [str(outcome), *(health.message for health in clients.check(peers.registry.clusters).values())]
            site.note()
        assert isinstance(outcome, Deployed)
        # Which cluster leads decides whether the life of a workload needs this.
        copy = item | {"kind": DRPC, "spec": {"placementRef": {"name": "none"}, "drPolicyRef": {"name": "none"}, "pvcSelector": {}}}
        for _attempt in range(3):
            outcome = DirectDeployer(peers).apply("west", copy, Stamp("uid", 1, 1))
            site.reported.append(str(outcome))
            outcome = DirectDeployer(peers).delete("west", ObjectRef(RAMEN, DRPC, name, "app"), Stamp("uid", 1, 1))
            site.reported.append(str(outcome))
            site.note()
        reader = DirectReader(peers)
        for _attempt in range(2):  # a workload needs it only with a synchronous policy
            site.reported.append(str(reader.get(["west"], ObjectRef(RAMEN, DR_CLUSTER, "", "west"))))
            site.note()
        _release_directly(site, kube, copy)
    finally:
        dr.sites["west"].kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _release_directly(site: Site, kube: Kube, copy: Object) -> None:
    """A process deletes the copy of its own cluster, unless the leader of another cluster is first, which cannot be known before."""
    admin = site.dr.sites["east"].kube
    created = admin.create(copy | {"metadata": {"name": "released", "namespace": site.dr.namespace, "finalizers": [FINALIZER]}})
    for _attempt in range(4):
        try:
            release_copy(kube, created)
        except KubeError as error:
            site.reported.append(str(error))
        site.note()
    assert admin.find(RAMEN, DRPC, "released", site.dr.namespace) is None


_SPEC = {
    "pvcSelector": {},
    "replicationState": "secondary",
    "s3Profiles": ["s3-east"],
    "async": {"schedulingInterval": "1m"},
}
