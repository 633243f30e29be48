"""Orders as tenants apply them, and the runs that reconcile them on a real API server: in this process, or by `ansible-playbook`."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.site import SECRETS
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube, retry_on_conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, lease_name
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from .in_process import InProcessRun, act
from .tenants import tenant_of

GROUP, OTHER_GROUP = "cloudkit.openshift.io", "osac.openshift.io"
PULL_SECRET = SECRETS["pull_secret"]  # that of the site, for orders without one
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
NEXT_RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.1-multi"
HYPERSHIFT = "hypershift.openshift.io/v1beta1"
HOLD = "example.com/hold"
PAST = "2020-01-01T00:00:00.000000Z"
CREATED_KINDS = [
    ("v1", "Secret"),
    (HYPERSHIFT, "HostedCluster"),
    (HYPERSHIFT, "NodePool"),
]
# What is created for an order named demo with nodes of one class.
CREATED = [
    "HostedCluster/demo",
    "NodePool/demo-fc430",
    "Secret/demo-etcd-encryption-key",
    "Secret/demo-pull-secret",
    "Secret/demo-ssh-key",
]
ALLOWED = ["127.0.0.1"]  # where the sandbox's clusters are
WAIT_SECONDS = 200
RUN_SECONDS = 600
MARK = "OPENFLEET_TEST_RUN"

# Kills the run that it is part of, as a full node or an impatient person would, when its N-th task starts.
KILLER = """
import os
import signal
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "killer"
    started = 0

    def v2_playbook_on_task_start(self, task, is_conditional):
        type(self).started += 1
        if self.started == int(os.environ["KILL_AT"]):
            os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass(frozen=True)
class Run:
    """An ansible-playbook run that has ended."""

    code: int
    output: str

    @cached_property
    def recap(self) -> dict[str, dict[str, int]]:
        """The numbers of the recap by host."""
        hosts = re.findall(r"^(\S+)\s+: (ok=.*)$", self.output, re.MULTILINE)
        return {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", numbers)} for host, numbers in hosts}

    @property
    def changed(self) -> int:
        return sum(numbers["changed"] for numbers in self.recap.values())

    def successful(self) -> Run:
        assert self.code == 0, self.output
        return self


class Started:
    """A run that has not ended. All its processes have a mark in their environment, also those that left its session."""

    def __init__(self, command: list[str], environment: Mapping[str, str], folder: Path) -> None:
        self._mark = f"{MARK}={secrets.token_hex(8)}"
        name, _equals, value = self._mark.partition("=")
        self.process = subprocess.Popen(
            command, env={**environment, name: value}, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def end(self) -> Run:
        try:
            output, _nothing = self.process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            raise
        return Run(self.process.returncode, output)

    def processes(self) -> list[int]:
        """All processes of the run, the one that renews its locks too."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def signal(self, number: signal.Signals) -> None:
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


@dataclass(frozen=True)
class Orders:
    """The orders of one namespace."""

    hub: Access
    namespace: str
    folder: Path
    group: str = GROUP
    external: bool = False  # whether another controller owns the orders

    @property
    def kube(self) -> Kube:
        return self.hub.kube

    # What a tenant does

    @cached_property
    def tenant(self) -> Kube:
        """The connection of a tenant, who has only the shipped role, and only in this namespace."""
        return tenant_of(self.hub, self.namespace, self.group)

    def apply(
        self,
        name: str = "demo",
        nodes: Mapping[str, int] | None = None,
        template: str = "ocp_4_17_small",
        annotations: Mapping[str, str] | None = None,
        raw_parameters: str | None = None,
        **parameters: Any,
    ) -> None:
        """Create an order, or update it to this."""
        text = json.dumps(parameters) if raw_parameters is None else raw_parameters
        spec: Object = {"templateID": template, "templateParameters": text}
        if nodes is not None:
            spec["nodeRequests"] = [{"resourceClass": key, "numberOfNodes": count} for key, count in nodes.items()]

        def write() -> None:
            present = self.get(name)
            if present is None:
                metadata = {"name": name, "namespace": self.namespace, "annotations": dict(annotations or {})}
                self.tenant.create({"apiVersion": self.api_version, "kind": "ClusterOrder", "metadata": metadata, "spec": spec})
            else:
                present["metadata"]["annotations"] = present["metadata"].get("annotations", {}) | dict(annotations or {})
                self.tenant.replace(present | {"spec": spec})

        retry_on_conflict(write)

    def put_secret(self, name: str, **data: str) -> None:
        """Create a Secret in the namespace of the orders, or update it to this."""
        metadata = {"name": name, "namespace": self.namespace}
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        self.tenant.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})

    def get(self, name: str = "demo") -> Any:
        return self.kube.find(self.api_version, "ClusterOrder", name, self.namespace)

    def status(self, name: str = "demo") -> Object:
        status: Object = self.get(name).get("status", {})
        return status

    def condition(self, kind: str, name: str = "demo") -> Object:
        """The condition, with nothing in it before it is written."""
        conditions = self.status(name).get("conditions", [])
        found: Object = next((entry for entry in conditions if entry["type"] == kind), dict.fromkeys(("status", "reason", "message"), ""))
        return found

    def patch(self, patch: Object, name: str = "demo", subresource: str = "") -> None:
        self.kube.patch(self._named(name), patch, subresource=subresource, checked=False)

    def ask_to_delete(self, name: str = "demo") -> None:
        """Delete the order as a tenant does, without a wait."""
        self.tenant.delete(self._named(name))

    def _named(self, name: str) -> Object:
        return {"apiVersion": self.api_version, "kind": "ClusterOrder", "metadata": {"name": name, "namespace": self.namespace}}

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1alpha1"

    @property
    def kind(self) -> str:
        return f"clusterorders.{self.group}"

    # What is there for an order

    def working(self, name: str = "demo") -> str:
        """The working namespace. Another controller that owns the orders chooses its name, and records it."""
        reference = (self.get(name) or {}).get("status", {}).get("clusterReference") if self.external else None
        return str((reference or {}).get("namespace") or Names(self.group, self.external).working_namespace(self.namespace, name))

    def cluster_name(self, name: str = "demo") -> str:
        return Names(self.group, self.external).cluster_name(name)

    def objects(self, name: str = "demo") -> list[Object]:
        """All that was created for the order in its working namespace, without the Secrets of HyperShift, which have its labels too."""
        label = f"{self.group}/clusterorder={name}"
        lists = self.kube.in_parallel(lambda kind: self.kube.list_all(*kind, self.working(name), label), CREATED_KINDS)
        items = [item for found in lists if not isinstance(found, KubeError) for item in found]
        return [item for item in items if item["kind"] != "Secret" or "ownerReferences" not in item["metadata"]]

    def names(self, name: str = "demo") -> list[str]:
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in self.objects(name))

    def hosted_cluster(self, name: str = "demo") -> Any:
        return self.kube.find(HYPERSHIFT, "HostedCluster", self.cluster_name(name), self.working(name))

    def patch_cluster(self, patch: Object, name: str = "demo") -> None:
        """Change the HostedCluster by hand, also while the stand-in writes to it."""
        self.kube.patch(_hypershift("HostedCluster", self.cluster_name(name), self.working(name)), patch, checked=False)

    def patch_pool(self, patch: Object, name: str = "demo", resource_class: str = "fc430") -> None:
        self.kube.patch(_hypershift("NodePool", f"{self.cluster_name(name)}-{resource_class}", self.working(name)), patch, checked=False)

    def hold_cluster(self, name: str = "demo") -> None:
        """Keep the HostedCluster from being deleted, until `release_cluster`."""

        def hold() -> None:
            cluster = self.hosted_cluster(name)
            self.kube.patch(cluster, {"metadata": {"finalizers": [*cluster["metadata"].get("finalizers", []), HOLD]}})

        retry_on_conflict(hold)

    def release_cluster(self, name: str = "demo") -> None:
        def release() -> None:
            cluster = self.hosted_cluster(name)
            self.kube.patch(cluster, {"metadata": {"finalizers": [it for it in cluster["metadata"]["finalizers"] if it != HOLD]}})

        retry_on_conflict(release)

    def pools(self, name: str = "demo") -> dict[str, int]:
        pools = self.kube.list_all(HYPERSHIFT, "NodePool", self.working(name))
        return {pool["metadata"]["labels"][f"{self.group}/resource-class"]: pool["spec"]["replicas"] for pool in pools}

    def versions(self, name: str = "demo") -> dict[str, str]:
        """The version of each object, which every write changes; of those that the stand-in writes too, what our writes change."""
        objects = [*self.objects(name), self.get(name), self.kube.get("v1", "Namespace", self.working(name))]

        def version(item: Object) -> str:
            metadata = item["metadata"]
            if item["kind"] in ("HostedCluster", "NodePool"):
                return f"generation {metadata['generation']}"
            token = f"token {metadata.get('annotations', {}).get(f'{self.group}/lock-token')}"
            return f"{token}, {item.get('data')}" if item["kind"] == "Secret" else str(metadata["resourceVersion"])

        return {f"{item['kind']}/{item['metadata']['name']}": version(item) for item in objects}

    def lease(self, name: str = "demo") -> Object:
        lease = self.kube.find("coordination.k8s.io/v1", "Lease", lease_name(self.namespace, name), SITE_NAMESPACE)
        spec: Object = (lease or {}).get("spec", {})
        return spec

    def free_lock(self, name: str = "demo") -> None:
        """Release the lock of a dead holder, without the wait for its expiry."""
        self.patch_lease({"holderIdentity": None, "acquireTime": None, "renewTime": None}, name)

    def expire_lock(self, name: str = "demo") -> None:
        """Set a renewTime that has expired."""
        self.patch_lease({"renewTime": PAST}, name)

    def patch_lease(self, spec: Object, name: str = "demo") -> None:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": lease_name(self.namespace, name), "namespace": SITE_NAMESPACE},
        }
        self.kube.patch(lease, {"spec": spec}, checked=False)

    def is_deleted(self, name: str = "demo") -> bool:
        return self.get(name) is None and self.kube.find("v1", "Namespace", self.working(name)) is None

    # Runs in this process

    def run(
        self,
        step: str,
        *names: str,
        check: bool = False,
        kubeconfig: Path | None = None,
        event: Object | None = None,
        site: Mapping[str, Any] | None = None,
        **prepare: Any,
    ) -> InProcessRun:
        """A run for these orders, those of an event, or all that need it; prepared: its templates and its end are still to come.

        `site` are the variables that the site has set for its templates.
        """
        chosen = [f"{self.namespace}/{name}" for name in names]
        variables = dict(site or {}) | ({"ansible_eda": {"event": event}} if event is not None else {})
        return InProcessRun(step, self._options(kubeconfig), chosen, self.folder, check, variables, prepare).prepare()

    def _options(self, kubeconfig: Path | None) -> Object:
        return {"kubeconfig": str(kubeconfig or self.hub.kubeconfig), "api_group": self.group, "allowed_addresses": ALLOWED}

    def provision(self, name: str = "demo", wait: float = WAIT_SECONDS, **prepare: Any) -> InProcessRun:
        """Reconcile the order, and wait until it is Ready."""
        run = self.run("provision", name, **prepare).complete(wait).successful()
        assert not wait or self.status(name)["phase"] == "Ready", self.status(name)
        return run

    def remove(self, name: str = "demo", wait: float = WAIT_SECONDS, **prepare: Any) -> InProcessRun:
        """Delete the order with its cluster, and wait until both are deleted."""
        return self.run("delete", name, **prepare).complete(wait).successful()

    def sync(self, *names: str, check: bool = False, kubeconfig: Path | None = None) -> Object:
        """Bring the status of these orders, or of all, up to date with their clusters."""
        chosen = {"orders": [f"{self.namespace}/{name}" for name in names]} if names else {}
        return act("cluster_order_status", self._options(kubeconfig) | chosen, check=check)

    def until_phase(self, phase: str, name: str = "demo") -> None:
        def reached() -> bool:
            answer = self.sync(name)
            assert not answer.get("failed"), answer
            return bool(self.status(name).get("phase") == phase)

        until(reached, f"order {name} is {phase}")

    # Runs of ansible-playbook

    def start(
        self,
        playbook: str,
        name: str | None = "demo",
        *options: str,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Started:
        settings = {"cluster_order_name": name, "cluster_order_namespace": self.namespace} if name else {}
        if self.group != GROUP:
            settings["cluster_order_api_group"] = self.group
        command = [str(Path(sys.executable).parent / "ansible-playbook"), f"openfleet.clusters.{playbook}", *options]
        command += ["-e", json.dumps(settings | variables)]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))}
        collections = os.pathsep.join([str(self.folder / "collections"), str(Path(sys.prefix) / "collections")])
        own = {
            "KUBECONFIG": str(kubeconfig or self.hub.kubeconfig),
            "HOME": str(self.folder),
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
        }
        return Started(command, inherited | own | dict(environment or {}), self.folder)

    def play(self, playbook: str, name: str | None = "demo", *options: str, **settings: Any) -> Run:
        return self.start(playbook, name, *options, **settings).end()

    def create(self, name: str = "demo", *options: str, **settings: Any) -> Run:
        """Play create_cluster, and wait until the order is Ready."""
        run = self.play("create_cluster", name, *options, **{"cluster_wait_timeout": WAIT_SECONDS} | settings).successful()
        assert self.status(name)["phase"] == "Ready", self.status(name)
        return run

    def delete(self, name: str = "demo", *options: str, **settings: Any) -> Run:
        """Play delete_cluster, and wait until the order is deleted."""
        return self.play("delete_cluster", name, *options, **{"cluster_wait_timeout": WAIT_SECONDS} | settings).successful()

    def clean_up(self) -> None:
        """Delete what a test has left. Orders are deleted at once, for the next test's event source; the rest in the background."""
        orders = self.kube.list_all(self.api_version, "ClusterOrder", self.namespace)
        label = f"{self.group}/clusterorder-namespace={self.namespace}"
        for item in [*orders, *self.kube.list_all("v1", "Namespace", label_selector=label)]:
            with contextlib.suppress(NotFound):  # it may have been deleted meanwhile
                if item["metadata"].get("finalizers"):
                    self.kube.patch(item, {"metadata": {"finalizers": None}}, checked=False)
                self.kube.delete(item)

    # What a site has of its own

    def role(self, name: str, files: Mapping[str, str]) -> str:
        """A role in a collection of the site; returns the name that orders and hooks know it by."""
        for path, text in files.items():
            file = self.folder / "collections/ansible_collections/acme/site/roles" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return f"acme.site.{name}"

    def template(self, name: str, **tasks: str) -> str:
        """A template that extends ours, with tasks of its own for the entry points that are named."""
        meta = "extends: openfleet.clusters.ocp_4_17_small\ntitle: Of the site\n"
        return self.role(name, {"meta/template.yml": meta} | {f"tasks/{entry}.yml": text for entry, text in tasks.items()})

    def fragile_template(self, name: str) -> str:
        """One with a `post_install`, whose `install` fails for as long as there is a file `broken-` and the order's name in our folder."""
        install = f"""
- name: Fail for as long as the site is broken
  ansible.builtin.assert:
    that: not ('{self.folder}/broken-' ~ cluster_order.metadata.name) is exists
    fail_msg: The site is broken
- name: Install
  ansible.builtin.include_role:
    name: openfleet.clusters.ocp_4_17_small
    tasks_from: install
    rolespec_validate: false
"""
        return self.template(name, install=install, post_install="[]\n")

    def gate(self) -> tuple[str, Path, Path]:
        """A hook that blocks a run: its name, the file that shows that a run has reached it, and the file that resumes it."""
        here, resume = self.folder / "here", self.folder / "resume"
        tasks = f"""
- name: Show that a run has reached the gate
  ansible.builtin.copy:
    content: here
    dest: {here}
    mode: "0600"
- name: Wait until it is resumed
  ansible.builtin.wait_for:
    path: {resume}
    timeout: {RUN_SECONDS}
    sleep: 1
"""
        return self.role("gate", {"tasks/main.yml": tasks}), here, resume

    def killer(self, task: int) -> dict[str, str]:
        """Settings of a run that is killed at the start of this task."""
        (self.folder / "callbacks").mkdir(exist_ok=True)
        (self.folder / "callbacks/killer.py").write_text(KILLER, encoding="utf-8")
        return {"ANSIBLE_CALLBACK_PLUGINS": str(self.folder / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "killer", "KILL_AT": str(task)}


def order(namespace: str, name: str, **parameters: str) -> Object:
    """An order for a cluster with one node, to be created many at a time."""
    spec = {
        "templateID": "ocp_4_17_small",
        "templateParameters": json.dumps(parameters),
        "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 1}],
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec}


def _hypershift(kind: str, name: str, namespace: str) -> Object:
    return {"apiVersion": HYPERSHIFT, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
