"""An order with GitOps on a site that has real git, charts and an OCI registry, and what came of it in its hosted cluster."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import ChartRepository, GitOpsAccess, OciRegistry, Repository
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.charts import Chart
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.condition_types import INSTALLED, TYPES
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from .gitops import FLUX_NAMESPACE, HELM
from .orders import Orders

REQUESTED = "reconcile.fluxcd.io/requestedAt"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-git\n  namespace: default\ndata:\n  answer: '{answer}'\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: "example.com/web:{{ .Chart.Version }}"}]}
"""


@dataclass(frozen=True)
class GitOpsSite:
    """A site whose orders have GitOps, and the order of a tenant on it."""

    sandbox: Sandbox
    orders: Orders
    git: Repository
    charts: ChartRepository
    registry: OciRegistry
    conditions: tuple[str, ...]  # those that its orders have

    def order(self, **versions: str) -> None:
        """Create the order with these versions of its profiles, or change it to them."""
        source = {"url": self.git.url, "ref": {"branch": "main"}, "path": "./apps", "secretRef": {"name": "deploy"}}
        profiles = [{"name": name, "version": version} for name, version in versions.items()]
        self.orders.apply(nodes={"fc430": 1}, gitops={"source": source, "profiles": profiles})

    def provision(self) -> None:
        """The first step, up to a control plane that is available."""
        self.orders.provision(wait=0)

        def is_available() -> bool:
            self.orders.sync("demo")
            return bool(self.orders.condition("ControlPlaneAvailable")["status"] == "True")

        until(is_available, "the control plane is available")

    def play(self) -> None:
        """What the engine starts for an order that is new or has changed, as often as the second step asks for it."""
        self.provision()

        def is_applied() -> bool:
            self.orders.run("post_install", "demo").complete().successful()
            return bool(self.orders.condition("TemplateApplied")["status"] == "True")

        until(is_applied, "everything is applied")

    def play_and_kill(self) -> int:
        """Kill a run of the second step at a task, each time at a later one, until a run survives; returns how many did not."""
        for number in range(50):
            started = self.orders.start("post_install", environment=self.orders.killer(1 + 2 * number))
            code = started.end().code
            started.signal(signal.SIGKILL)  # what it has left behind
            self.orders.free_lock()
            if code == 0:
                return number
            assert code == -signal.SIGKILL, code
        raise AssertionError("no run survives")

    def fetch(self, sources: str) -> None:
        """Have Flux fetch now what it would fetch in the next minutes."""
        self.inside().kubectl("annotate", sources, "--all", "--overwrite", "-n", FLUX_NAMESPACE, f"{REQUESTED}={time.time()}")

    def until_conditions(self, message: str = "", **wanted: str) -> None:
        """Wait until the conditions of GitOps are True, or as given, and the last one has the message."""
        expected = dict.fromkeys(self.conditions, "True") | wanted

        def reached() -> bool:
            self.orders.sync("demo")
            found = {kind: self.orders.condition(kind) for kind in self.conditions}
            has_message = message in found["ProfilesReady"]["message"]
            return has_message and {kind: condition["status"] for kind, condition in found.items()} == expected

        try:
            until(reached, f"the conditions are {expected}")
        except Exception as error:
            raise AssertionError(f"{error} The order has {self.orders.status()}") from error

    def inside(self) -> Access:
        secret = self.orders.hub.get("secret", f"{self.orders.cluster_name()}-admin-kubeconfig", "-n", self.orders.working())
        path = self.orders.folder / "inside"
        path.write_bytes(base64.b64decode(secret["data"]["kubeconfig"]))
        path.chmod(0o600)
        return Access(path)

    def answer(self) -> str:
        """What the cluster has of git."""
        found = self.inside().get("configmap", "from-git") or {"data": {"answer": ""}}
        return str(found["data"]["answer"])

    def deployed(self, name: str) -> tuple[str, str]:
        """The version of a release that is installed, and when it was."""
        release = self.inside().kube.get(HELM, "HelmRelease", name, FLUX_NAMESPACE)["status"]["history"][0]
        return str(release["chartVersion"]).partition("+")[0], str(release["lastDeployed"])

    def controllers(self) -> dict[str, int]:
        owner = f"{self.orders.working()}/{self.orders.cluster_name()} (Flux)"
        return {each.name: each.pid for each in self.sandbox.status() if each.owner == owner and each.running}

    def kill_controllers(self) -> None:
        for pid in self.controllers().values():
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def gitops_site(sandbox: Sandbox, services: GitOpsAccess, orders: Orders, gitops: Object) -> Iterator[GitOpsSite]:
    """A site whose settings have `gitops`, two profiles and their charts; its settings are reset and its order is deleted afterwards."""
    hub, namespace = orders.hub, orders.namespace
    charts, registry, git = services.charts.named(namespace), services.registry, services.git
    settings: dict[str, Any] = {
        "infrastructure": {"gitops": gitops},
        "chart_repositories": {
            "http": {"url": charts.url, "insecure": True},
            "registry": {"url": f"{registry.url}/{namespace}", "insecure": True},
        },
        "profiles": {
            "base": {"repository": "registry", "layer": 2, "namespace": "workloads"},
            "web": {"repository": "http", "layer": 10, "namespace": "workloads"},
        },
    }
    stored = hub.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE)
    hub.kube.patch(stored, {"data": {key: yaml.safe_dump(value) for key, value in settings.items()}}, checked=False)
    conditions = tuple(kind for kind in TYPES if kind != INSTALLED or gitops.get("mode") != "hub")
    made = GitOpsSite(sandbox, orders, git.repository(namespace), charts, registry, conditions)
    made.git.commit({"apps/config.yaml": CONFIG.format(answer="41")})
    orders.put_secret("deploy", username=git.username, password=git.token)
    charts.publish(Chart("web", "1.0.0", templates={"deployment.yaml": DEPLOYMENT}))
    registry.push(namespace, Chart("base", "1.0.0"))
    yield made
    if orders.get():
        orders.remove()
    hub.kube.patch(stored, {"data": dict.fromkeys(settings)}, checked=False)
