"""Git as the way to change orders: proposed by a playbook to a real Gitea, merged, applied by real Flux, and compared by a playbook."""

from __future__ import annotations

import base64
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import Gitea
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..support.actions import answer
from ..support.gitops import FLUX_NAMESPACE, KUSTOMIZE, SOURCE, condition
from ..support.manifests import manifest
from ..support.playbooks import COLLECTION, RUN_SECONDS, Task, play

CRD = Path(__file__).parents[3] / "extensions/crds/clusterorders.yaml"
API, NAMESPACE, NAME = "cloudkit.openshift.io/v1alpha1", "git-orders", "git-orders"
PULL_SECRET = {"secretRef": {"name": "registries", "key": ".dockerconfigjson"}}


@dataclass(frozen=True)
class Site:
    """A hub that Flux applies the orders of a repository on. No controller of orders runs there."""

    hub: Access
    gitea: Gitea

    @property
    def repository(self) -> str:
        return f"{self.gitea.username}/{NAME}"

    @property
    def options(self) -> dict[str, str]:
        return {"forge": "gitea", "forge_url": self.gitea.url, "forge_token": self.gitea.token, "repository": self.repository}

    def play(self, playbook: str, **variables: Any) -> str:
        """The output of a playbook run, in which the token is never shown."""
        program = str(Path(sys.executable).parent / "ansible-playbook")
        values = {"forge_url": self.gitea.url, "orders_repository": self.repository, "hub_kubeconfig": str(self.hub.kubeconfig)} | variables
        settings = {"FORGE_TOKEN": self.gitea.token, "ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections")}
        command = [program, f"{COLLECTION}.{playbook}", "-vvv", "--diff", "-e", json.dumps(values)]
        run = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert self.gitea.token not in run.stdout + run.stderr
        return run.stdout

    def pulls(self) -> list[Any]:
        found: list[Any] = self.gitea.call("GET", f"/repos/{self.repository}/pulls?state=open")
        return found

    def merge(self, number: int) -> None:
        self.gitea.merge(self.repository, number)

    def order(self) -> Object | None:
        return self.hub.kube.find(API, "ClusterOrder", "demo", NAMESPACE)

    def nodes(self) -> Any:
        return ((self.order() or {}).get("spec") or {}).get("nodeRequests")

    def drift(self) -> Any:
        result = answer("cluster_order_drift_info", kubeconfig=str(self.hub.kubeconfig), **self.options).result
        assert not result.get("failed"), result
        return {entry["name"]: (entry["state"], entry["hub"]) for entry in result["orders"]}


def commit(gitea: Gitea, path: str, item: Object) -> None:
    """Commit an object to the branch that Flux applies."""
    content = base64.b64encode(yaml.safe_dump(item).encode()).decode()
    gitea.call("POST", f"/repos/{gitea.username}/{NAME}/contents/{path}", {"branch": "main", "message": "Add a file", "content": content})


@pytest.fixture
def site(flux_cluster: Access, gitea: Gitea) -> Iterator[Site]:
    url = gitea.create_repository(NAME)
    # Flux applies nothing of a folder that is gone with its last order, and so would not delete that one.
    commit(gitea, "orders/about.yaml", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders", "namespace": NAMESPACE}})
    token = {key: base64.b64encode(text.encode()).decode() for key, text in (("username", gitea.username), ("password", gitea.token))}
    metadata = {"name": NAME, "namespace": FLUX_NAMESPACE}
    source = {"url": url, "ref": {"branch": "main"}, "interval": "2s", "secretRef": {"name": NAME}}
    applied: Object = {
        "interval": "5s",
        "retryInterval": "2s",
        "path": "./orders",
        "prune": True,
        "sourceRef": {"kind": "GitRepository", "name": NAME},
        "serviceAccountName": NAME,
    }
    bound = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "subjects": [{"kind": "ServiceAccount", **metadata}]}
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        yaml.safe_load(CRD.read_text(encoding="utf-8")),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        manifest("tenant_cluster_role"),
        manifest("tenant/role_binding") | bound,
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": token},
        {"apiVersion": SOURCE, "kind": "GitRepository", "metadata": metadata, "spec": source},
        {"apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": metadata, "spec": applied},
    ]
    for item in objects:
        flux_cluster.kube.apply(item)
    yield Site(flux_cluster, gitea)
    for item in reversed(objects):
        flux_cluster.kube.delete(item)
        reference = item["apiVersion"], item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")
        until(lambda reference=reference: flux_cluster.kube.find(*reference) is None, f"{reference} is deleted")
    gitea.call("DELETE", f"/repos/{gitea.username}/{NAME}")


def test_an_order_is_proposed_merged_applied_changed_and_compared(site: Site) -> None:
    order = {
        "cluster_order_name": "demo",
        "cluster_order_namespace": NAMESPACE,
        "cluster_template": "ocp_4_17_small",
        "cluster_template_parameters": {"pull_secret": PULL_SECRET},
        "cluster_node_requests": [{"resourceClass": "fc430", "numberOfNodes": 2}],
    }
    output = site.play("propose_order", **order)
    (pull,) = site.pulls()
    assert pull["html_url"] in output and pull["title"] == f"Order the cluster {NAMESPACE}/demo"
    wanted = {"name": "demo", "namespace": NAMESPACE, **site.options}
    again = answer("cluster_order_proposal", **wanted, template_id="ocp_4_17_small", template_parameters={"pull_secret": PULL_SECRET},
                   node_requests=order["cluster_node_requests"])  # fmt: skip
    assert (again.changed, again.result["pull_request"]["number"]) == (False, pull["number"])
    site.merge(pull["number"])
    until(site.order, "Flux has applied the order")
    assert site.nodes() == order["cluster_node_requests"]
    assert site.drift() == {"demo": ("InSync", [])}

    # A change by hand shows as drift, until Flux takes it back; so Flux is suspended.
    flux = {"apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": {"name": NAME, "namespace": FLUX_NAMESPACE}}
    site.hub.kube.patch(flux, {"spec": {"suspend": True}}, checked=False)
    named = {"apiVersion": API, "kind": "ClusterOrder", "metadata": {"name": "demo", "namespace": NAMESPACE}}
    nine = [{"resourceClass": "fc430", "numberOfNodes": 9}]

    def is_changed() -> bool:
        """Once it stays so: a reconcile that Flux has begun before takes it back."""
        site.hub.kube.patch(named, {"spec": {"nodeRequests": nine}}, checked=False)
        until(lambda: not condition(site.hub.kube.get(KUSTOMIZE, "Kustomization", NAME, FLUX_NAMESPACE), "Reconciling"), "it has ended")
        return bool(site.nodes() == nine)

    until(is_changed, "the order is changed by hand")
    shown = site.play("drift")
    assert '"state": "Different"' in shown and '"nodeRequests"' in shown
    assert "The current spec of the order is not applied to the cluster yet." in shown
    site.hub.kube.patch(flux, {"spec": {"suspend": False}}, checked=False)

    # A change of one field keeps the others; a deletion is a proposal too.
    changed = answer("cluster_order_proposal", **wanted, node_requests=[{"resourceClass": "fc430", "numberOfNodes": 3}])
    assert changed.changed and "numberOfNodes: 3" in changed.result["diff"]["after"] and "registries" in changed.result["diff"]["after"]
    site.merge(changed.result["pull_request"]["number"])
    until(lambda: site.nodes() == [{"resourceClass": "fc430", "numberOfNodes": 3}], "Flux has applied the change")
    removed = answer("cluster_order_proposal", **wanted, state="absent")
    site.merge(removed.result["pull_request"]["number"])
    until(lambda: site.order() is None, "Flux has deleted the order")


def test_flux_applies_with_the_permissions_of_a_tenant_and_no_others(site: Site) -> None:
    own: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own", "namespace": NAMESPACE}}
    foreign = own | {"metadata": {"name": "own", "namespace": "default"}}
    commit(site.gitea, "orders/own.yaml", own)
    until(lambda: site.hub.kube.find("v1", "Secret", "own", NAMESPACE), "Flux has applied what a tenant may")
    commit(site.gitea, "orders/foreign.yaml", foreign)

    def refusal() -> str:
        found = condition(site.hub.kube.get(KUSTOMIZE, "Kustomization", NAME, FLUX_NAMESPACE))
        return str(found["message"]) if found.get("status") == "False" else ""

    refused = until(lambda: text if "forbidden" in (text := refusal()) else "", "Flux reports that it may not apply it")
    assert f"system:serviceaccount:{FLUX_NAMESPACE}:{NAME}" in refused
    assert site.hub.kube.find("v1", "Secret", "own", "default") is None


def test_a_proposal_with_a_mistake_opens_nothing(site: Site) -> None:
    wanted = {"name": "demo", "namespace": NAMESPACE, **site.options}
    secret = answer("cluster_order_proposal", **wanted, template_id="ocp_4_17_small", template_parameters={"pull_secret": '{"auths": {}}'})
    assert "parameter pull_secret must be" in secret.message
    unknown = answer("cluster_order_proposal", **wanted, template_id="ocp_none")
    assert "There is no cluster template ocp_none" in unknown.message
    token = answer("cluster_order_proposal", **wanted | {"forge_token": "wrong-one"}, template_id="ocp_4_17_small")
    assert "refuses the token" in token.message and "wrong-one" not in token.message
    missing = answer("cluster_order_proposal", **wanted | {"repository": "sandbox/none"}, template_id="ocp_4_17_small")
    assert "has no repository sandbox/none" in missing.message
    assert site.pulls() == []


def examples(module: str) -> list[Task]:
    tasks: list[Task] = yaml.safe_load(importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").EXAMPLES)
    return tasks


@pytest.fixture
def platform_repository(gitea: Gitea) -> Iterator[str]:
    """The repository that the examples name."""
    gitea.call("POST", "/orgs", {"username": "platform"})
    gitea.call("POST", "/orgs/platform/repos", {"name": "clusters", "auto_init": True, "default_branch": "main"})
    yield "platform/clusters"
    gitea.call("DELETE", "/repos/platform/clusters")
    gitea.call("DELETE", "/orgs/platform")


def test_examples_of_orders_in_git(site: Site, platform_repository: str, tmp_path: Path) -> None:
    tasks = [*examples("cluster_order_proposal"), *examples("cluster_order_drift_info")]
    secrets, defaults = {"forge_token": site.gitea.token}, {"kubeconfig": str(site.hub.kubeconfig)}
    played = play(tmp_path, tasks, defaults=defaults, secrets=secrets, forge_url=site.gitea.url)
    assert played.code == 0, played.output
    (pull,) = site.gitea.call("GET", f"/repos/{platform_repository}/pulls?state=open")
    assert pull["html_url"] in played.output and site.gitea.token not in played.output
    assert played["Compare the repository with the hub"].result["in_sync"], "nothing is merged yet"
