"""Orders as tenants place them, and playbook runs as people make them: real `ansible-playbook` processes on a real API server."""

from __future__ import annotations

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
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import working_namespace

Object = dict[str, Any]

GROUP, OTHER_GROUP = "cloudkit.openshift.io", "osac.openshift.io"
PULL_SECRET = '{"auths": {"registry.example.com": {"auth": "c2VjcmV0"}}}'  # noqa: S105 - of nobody
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
NEXT_RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.1-multi"
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

    def well(self) -> Run:
        assert self.code == 0, self.output
        return self


class Started:
    """A run that goes on. All its processes carry a mark of their own in their environment, also those that left its session."""

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

    # What a tenant does

    def place(
        self,
        name: str = "demo",
        nodes: Mapping[str, int] | None = None,
        template: str = "ocp_4_17_small",
        annotations: Mapping[str, str] | None = None,
        raw_parameters: str | None = None,
        **parameters: Any,
    ) -> None:
        """Place an order, or change it to this."""
        text = json.dumps({"pull_secret": PULL_SECRET} | parameters) if raw_parameters is None else raw_parameters
        spec: Object = {"templateID": template, "templateParameters": text}
        if nodes is not None:
            spec["nodeRequests"] = [{"resourceClass": key, "numberOfNodes": count} for key, count in nodes.items()]
        metadata = {"name": name, "namespace": self.namespace, "annotations": dict(annotations or {})}
        order = {"apiVersion": f"{self.group}/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec}
        # Not by kubectl's own apply, which keeps a copy of the whole in an annotation with a limit of its own.
        self.hub.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(order))

    def get(self, name: str = "demo") -> Any:
        return self.hub.get(self.kind, name, "-n", self.namespace)

    def status(self, name: str = "demo") -> Object:
        status: Object = self.get(name).get("status", {})
        return status

    def condition(self, kind: str, name: str = "demo") -> Object:
        found: Object = next(entry for entry in self.status(name)["conditions"] if entry["type"] == kind)
        return found

    def patch(self, patch: Object, name: str = "demo", *options: str) -> None:
        self.hub.kubectl("patch", self.kind, name, "-n", self.namespace, "--type=merge", "-p", json.dumps(patch), *options)

    @property
    def kind(self) -> str:
        return f"clusterorders.{self.group}"

    # What is there for an order

    def working(self, name: str = "demo") -> str:
        return working_namespace(self.namespace, name)

    def objects(self, name: str = "demo") -> list[Object]:
        """All that was made for the order in its working namespace."""
        kinds = "secrets,serviceaccounts,rolebindings,hostedclusters,nodepools"
        found = self.hub.get(kinds, "-n", self.working(name), "-l", f"{self.group}/clusterorder={name}")
        items: list[Object] = found["items"]
        return items

    def names(self, name: str = "demo") -> list[str]:
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in self.objects(name))

    def pools(self, name: str = "demo") -> dict[str, int]:
        pools = self.hub.get("nodepools", "-n", self.working(name))["items"]
        return {pool["metadata"]["labels"][f"{self.group}/resource-class"]: pool["spec"]["replicas"] for pool in pools}

    def versions(self, name: str = "demo") -> dict[str, str]:
        """The version of each object, which every write changes; those that the stand-in writes itself are left out."""
        kept = [item for item in self.objects(name) if item["kind"] not in ("HostedCluster", "NodePool")]
        kept += [self.get(name), self.hub.get("namespace", self.working(name))]
        generations = {
            f"{item['kind']}/{item['metadata']['name']}": f"generation {item['metadata']['generation']}"
            for item in self.objects(name)
            if item["kind"] in ("HostedCluster", "NodePool")
        }
        return generations | {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in kept}

    def lease(self, name: str = "demo") -> Object:
        lease = self.hub.get("lease", f"cluster-{name}-lock", "-n", self.namespace)
        spec: Object = (lease or {}).get("spec", {})
        return spec

    def free_lock(self, name: str = "demo") -> None:
        """What a dead holder's expiry would do, without the wait for it."""
        self.patch_lease({"holderIdentity": None, "acquireTime": None, "renewTime": None}, name)

    def patch_lease(self, spec: Object, name: str = "demo") -> None:
        patch = json.dumps({"spec": spec})
        self.hub.kubectl("patch", "lease", f"cluster-{name}-lock", "-n", self.namespace, "--type=merge", "-p", patch)

    # What an operator does

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
        """Carry the order out, and wait until it is Ready."""
        run = self.play("create_cluster", name, *options, **{"cluster_wait_timeout": 200} | settings).well()
        assert self.status(name)["phase"] == "Ready", self.status(name)
        return run

    def delete(self, name: str = "demo", *options: str, **settings: Any) -> Run:
        return self.play("delete_cluster", name, *options, **{"cluster_wait_timeout": 200} | settings).well()

    def is_gone(self, name: str = "demo") -> bool:
        return self.get(name) is None and self.hub.get("namespace", self.working(name)) is None

    def until_phase(self, phase: str, name: str = "demo") -> None:
        def reached() -> bool:
            self.play("sync_status", name).well()
            return bool(self.status(name).get("phase") == phase)

        until(reached, f"order {name} is {phase}")

    def clean_up(self) -> None:
        """Take away what a test has left: the orders now, so that the next test's source does not see them; the rest goes on meanwhile."""
        # Any of it may go by itself meanwhile, and that is as well.
        unheld = ("--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        if left := _names(self.hub.get(self.kind, "-n", self.namespace)):
            self.hub.kubectl("patch", self.kind, *left, "-n", self.namespace, *unheld, check=False)
            self.hub.kubectl("delete", self.kind, *left, "-n", self.namespace, "--wait=false", "--ignore-not-found")
        if left := _names(self.hub.get("namespaces", "-l", f"{self.group}/clusterorder-namespace={self.namespace}")):
            self.hub.kubectl("patch", "namespaces", *left, *unheld, check=False)
            self.hub.kubectl("delete", "namespaces", *left, "--wait=false", "--ignore-not-found")

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
        """A hook that holds a run up: its name, the file that shows that a run has come to it, and the one that lets it go on."""
        here, go_on = self.folder / "here", self.folder / "go-on"
        tasks = f"""
- name: Show that a run has come here
  ansible.builtin.copy:
    content: here
    dest: {here}
    mode: "0600"
- name: Hold it up
  ansible.builtin.wait_for:
    path: {go_on}
    timeout: {RUN_SECONDS}
    sleep: 1
"""
        return self.role("gate", {"tasks/main.yml": tasks}), here, go_on

    def killer(self, task: int) -> dict[str, str]:
        """Settings of a run that is killed at the start of this task."""
        (self.folder / "callbacks").mkdir(exist_ok=True)
        (self.folder / "callbacks/killer.py").write_text(KILLER, encoding="utf-8")
        return {"ANSIBLE_CALLBACK_PLUGINS": str(self.folder / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "killer", "KILL_AT": str(task)}


def _names(found: Object) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]
