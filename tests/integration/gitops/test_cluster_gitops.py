"""The step of GitOps by tasks in this process, inside of a cluster with Flux's own definitions. The controllers are not here: the tests
write what they would report."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops import in_cluster
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.in_cluster import CONTROLLERS as CONTROLLERS_SET
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.in_cluster import DEFINITIONS, PROFILES, SYNC
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.kinds import (
    GROUP_SUFFIX,
    HELM,
    KUSTOMIZE,
    NOTIFICATION,
    SOURCE,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.observe import OURS
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.lock_file import ProfilesLock
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.kinds import Resource, registered_kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder

from ..plugins.test_examples import examples
from ..support import mortal
from ..support.actions import answer
from ..support.flux_objects import NAMESPACE, deployment, pinned, report, report_running, with_profiles
from ..support.flux_objects import PROFILES as TWO_PROFILES
from ..support.inside import serve_by_hub
from ..support.playbooks import Answer, play

LAB = {"name": "lab", "namespace": "gitops-lab", "provider": "hypershift"}
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
CONTROLLERS = ("kustomize-controller", "source-controller")
SOURCE_OPTION = {"url": "https://git.example.com/lab.git", "secretRef": {"name": "deploy"}}
SETS = ",".join((DEFINITIONS, CONTROLLERS_SET, SYNC, PROFILES))
KINDS = (
    ("v1", "Namespace"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("apps/v1", "Deployment"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    (SOURCE, "GitRepository"),
    (KUSTOMIZE, "Kustomization"),
    (SOURCE, "HelmRepository"),
    (SOURCE, "OCIRepository"),
    (HELM, "HelmRelease"),
)
SECRET = {"username": "robot", "password": "hunter2-do-not-show", "other": "not for the cluster"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_cluster, "SERVED_SECONDS", 120.0)  # what a busy machine may need


@pytest.fixture(scope="module")
def lab(quick_hub: Access) -> Iterator[Access]:
    """A cluster inside of which the hub itself is."""
    quick_hub.kubectl("create", "namespace", LAB["namespace"])
    values = (f"--from-literal={name}={value}" for name, value in SECRET.items())
    quick_hub.kubectl("create", "secret", "generic", "deploy", "-n", LAB["namespace"], *values)
    create_cluster(quick_hub, LAB["namespace"], on(quick_hub))
    yield quick_hub
    delete_cluster(quick_hub, LAB["namespace"])


def create_cluster(hub: Access, namespace: str, options: Object) -> None:
    wanted = {"version": RELEASE, "node_requests": [{"resourceClass": "fc430", "numberOfNodes": 1}]}
    made = answer("cluster", **options, **wanted, secrets={"pull_secret": '{"auths": {}}'})
    assert not made.failed, made.result
    serve_by_hub(hub, LAB["name"], namespace)


def delete_cluster(hub: Access, namespace: str) -> None:
    hub.kubectl("delete", "hostedclusters,nodepools", "--all", "-n", namespace)
    hub.kubectl("delete", "namespace", namespace)


@pytest.fixture
def order(lab: Access) -> Iterator[Object]:
    """An order whose cluster is the lab too: only orders have profiles."""
    metadata = {"name": LAB["name"], "namespace": LAB["namespace"], "uid": "5f0e2f1c-0000-4000-8000-000000000000"}
    made: Object = {"apiVersion": "cloudkit.openshift.io/v1alpha1", "kind": "ClusterOrder", "metadata": metadata}
    parsed = ClusterOrder.from_object(made)
    working = {"name": parsed.working_namespace, "labels": parsed.labels}
    lab.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": working})
    create_cluster(lab, parsed.working_namespace, on(lab, made))
    yield made
    delete_cluster(lab, parsed.working_namespace)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory, flux_crds: list[Object]) -> Object:
    return pinned(tmp_path_factory.mktemp("flux"), *flux_crds, *map(deployment, CONTROLLERS))


def on(hub: Access, order: Object | None = None) -> Object:
    cluster = {"cluster_order": order, "provider": LAB["provider"]} if order else LAB
    return {"kubeconfig": str(hub.kubeconfig), **cluster}


def applied(hub: Access, manifests: Object, order: Object | None = None, *, check: bool = False, **options: Any) -> Answer:
    done = answer("cluster_gitops", check=check, **on(hub, order), manifests=manifests, **({"source": SOURCE_OPTION} | options))
    assert not done.failed, done.result
    return done


def removed(hub: Access, order: Object | None = None, **options: Any) -> Object:
    done = answer("cluster_gitops", state="absent", **on(hub, order), **options)
    assert not done.failed, done.result
    part: Object = done.result["part"]
    return part


def remove(hub: Access, order: Object | None = None) -> None:
    until(lambda: removed(hub, order)["ready"], "Flux is removed")
    assert hub.kube.find("v1", "Namespace", NAMESPACE) is None
    assert not [item for item in hub.kube.list_all("v1", "ConfigMap", "kube-system") if "gitops" in item["metadata"]["name"]]


def states(done: Answer) -> dict[str, str]:
    return {kind: f"{state['status']} {state['reason']}" for kind, state in done.result["conditions"].items()}


def test_registered_kinds_are_those_of_flux(flux_crds: list[Object]) -> None:
    specs = {(crd["spec"]["group"], crd["spec"]["names"]["kind"]): crd["spec"] for crd in flux_crds}
    defined = {key: Resource(spec["names"]["plural"], spec["scope"] == "Namespaced") for key, spec in specs.items()}
    registered = {key: resource for key, resource in registered_kinds().items() if key[0].endswith(GROUP_SUFFIX)}
    assert registered and registered.items() <= defined.items()
    served = {(group, version["name"]) for (group, _kind), spec in specs.items() for version in spec["versions"] if version["served"]}
    assert {tuple(version.split("/")) for version in (SOURCE, KUSTOMIZE, HELM, NOTIFICATION)} <= served


def test_flux_from_nothing_to_nothing(lab: Access, manifests: Object, flux_crds: list[Object], tmp_path: Path) -> None:
    """One installation for all of it: its removal takes a while."""
    predict_and_refuse(lab, manifests)
    newer = pinned(tmp_path, *flux_crds, deployment(CONTROLLERS[1], "v2.0.0"), version="v2.10.0")
    install_report_and_upgrade(lab, manifests, newer)
    apply_from_the_hub(lab)
    run_examples_and_remove(lab, manifests, tmp_path)


def predict_and_refuse(lab: Access, manifests: Object) -> None:
    predicted = applied(lab, manifests, check=True)
    assert predicted.changed and lab.kube.find("v1", "Namespace", NAMESPACE) is None
    assert {"GitRepository", "Kustomization", "Deployment", "Secret"} <= {item["kind"] for item in predicted.result["objects"]}
    for options, message in (
        ({"manifests": manifests | {"sha256": "0" * 64}}, "have the SHA-256 digest"),
        ({"manifests": None}, "manifests is required"),
        ({"manifests": manifests, "source": {"url": "ftp://git.example.com"}}, "source.url must be"),
        ({"manifests": manifests, "source": SOURCE_OPTION | {"secretRef": {"name": "none"}}}, "The Secret none"),
        (
            {"mode": "hub", "source": SOURCE_OPTION | {"secretRef": None}, "allowed_addresses": ["git.example.com"]},
            "install Flux on the hub",
        ),
        (
            # Flux would resolve the name again, perhaps to another address.
            {"mode": "hub", "source": {"url": "https://localhost/a.git"}, "allowed_addresses": ["127.0.0.0/8", "::1"]},
            "does not allow connections to localhost",
        ),
    ):
        refused = answer("cluster_gitops", **on(lab), **options)
        assert message in str(refused.result) and not refused.changed
    assert lab.kube.find("v1", "Namespace", NAMESPACE) is None


def install_report_and_upgrade(flux: Access, manifests: Object, newer: Object) -> None:
    without = applied(flux, manifests, source=None)
    assert list(states(without)) == ["GitOpsInstalled"] and flux.kube.find(KUSTOMIZE, "Kustomization", NAMESPACE, NAMESPACE) is None
    first = applied(flux, manifests)
    assert first.changed and first.result["part"] == {"ready": True, "reason": "Applied", "message": "Flux v2.9.5"}
    assert states(first)["GitOpsSourceReady"] == states(first)["GitOpsSynced"] == "Unknown Pending"
    assert first.result["conditions"]["GitOpsInstalled"]["status"] != "True"
    secret = flux.kube.get("v1", "Secret", NAMESPACE, NAMESPACE)["data"]
    assert {name: base64.b64decode(value).decode() for name, value in secret.items()} == {
        name: SECRET[name] for name in ("username", "password")
    }
    assert "hunter2" not in str(first.result)

    report_running(flux, *CONTROLLERS)
    report(flux, "GitRepository", "False", "GitOperationFailed", "authentication required")
    failing = applied(flux, manifests)
    assert not failing.changed
    assert states(failing)["GitOpsInstalled"] == "True ControllersAvailable"
    assert failing.result["conditions"]["GitOpsSourceReady"] == {
        "status": "False",
        "reason": "GitOperationFailed",
        "message": "GitRepository flux-system: authentication required",
    }
    report(flux, "GitRepository", "True", "Succeeded", "stored artifact")
    report(flux, "Kustomization", "True", "ReconciliationSucceeded", "Applied revision: main@sha1:1")
    assert set(states(applied(flux, manifests)).values()) == {
        "True ControllersAvailable",
        "True Succeeded",
        "True ReconciliationSucceeded",
    }

    # Another reference is another generation, of which Flux has reported nothing yet.
    moved = applied(flux, manifests, source=SOURCE_OPTION | {"ref": {"tag": "v2"}})
    assert moved.changed and states(moved)["GitOpsSourceReady"] == "Unknown Outdated"
    assert states(moved)["GitOpsSynced"] == "True ReconciliationSucceeded"

    upgraded = applied(flux, newer)
    actions = {f"{item['kind']} {item['name']}": item["action"] for item in upgraded.result["objects"]}
    assert actions["Deployment source-controller"] == "changed" and actions["Deployment kustomize-controller"] == "deleted"
    assert upgraded.result["conditions"]["GitOpsInstalled"]["status"] == "Unknown"


def apply_from_the_hub(flux: Access) -> None:
    options = {"mode": "hub", **on(flux), "source": SOURCE_OPTION}
    refused = answer("cluster_gitops", **options)
    assert refused.failed and "allowed_addresses" in refused.result["msg"], "the hub connects for a tenant"
    options["allowed_addresses"] = ["git.example.com"]
    made = answer("cluster_gitops", **options)
    assert made.changed and list(states(made)) == ["GitOpsSourceReady", "GitOpsSynced"], made.result
    kustomization = flux.kube.get(KUSTOMIZE, "Kustomization", NAMESPACE, LAB["namespace"])
    reference = kustomization["spec"]["kubeConfig"]["secretRef"]
    kubeconfig = base64.b64decode(flux.kube.get("v1", "Secret", reference["name"], LAB["namespace"])["data"][reference["key"]])
    assert b"127.0.0.1" in kubeconfig and kustomization["metadata"]["labels"]["cloudkit.openshift.io/cluster"] == "lab"
    report(flux, "GitRepository", "False", "GitOperationFailed", "no route", namespace=LAB["namespace"])
    again = answer("cluster_gitops", **options)
    assert not again.changed and again.result["conditions"]["GitOpsSourceReady"]["message"] == "GitRepository flux-system: no route"
    assert removed(flux, mode="hub")["ready"]
    left = flux.kube.list_all("v1", "Secret", LAB["namespace"], label_selector="openfleet.clusters/resource-set=gitops")
    assert not left and flux.kube.find(SOURCE, "GitRepository", NAMESPACE, LAB["namespace"]) is None


def run_examples_and_remove(lab: Access, manifests: Object, folder: Path) -> None:
    def finalize(api_version: str, kind: str, name: str, namespace: str, *finalizers: str) -> None:
        """What a controller of Flux does at the begin, and at the end."""
        lab.kube.patch(lab.kube.get(api_version, kind, name, namespace), {"metadata": {"finalizers": list(finalizers)}}, checked=False)

    variables = {"flux_manifests": manifests["path"], "flux_sha256": manifests["sha256"]}
    tasks = [
        {key: value | LAB if key.endswith("cluster_gitops") else value for key, value in task.items()}
        for task in examples("cluster_gitops")
    ]
    played = play(folder, tasks[:2], defaults={"kubeconfig": str(lab.kubeconfig)}, **variables)
    assert played.code == 0, played.output
    assert played["Show what Flux reports of the repository"].result["msg"].startswith("GitRepository flux-system: ")
    finalize(KUSTOMIZE, "Kustomization", NAMESPACE, NAMESPACE, "finalizers.fluxcd.io")
    own = {"apiVersion": SOURCE, "kind": "GitRepository", "metadata": {"name": "of-a-user", "namespace": "default"}}
    lab.kube.create(own | {"spec": {"url": "https://git.example.com/a.git", "interval": "1m"}})
    finalize(SOURCE, "GitRepository", "of-a-user", "default", "finalizers.fluxcd.io")

    gone = answer("cluster_gitops", check=True, state="absent", **on(lab))
    assert {"Kustomization", "CustomResourceDefinition", "Deployment"} <= {item["kind"] for item in gone.result["objects"]}
    removal = play(folder, tasks[2:], defaults={"kubeconfig": str(lab.kubeconfig)})
    part = removal["Remove Flux and what it has applied"].result["part"]
    assert part["message"] == "Flux is deleting what it has applied of the git repository"
    assert lab.kube.find(SOURCE, "GitRepository", "of-a-user", "default")
    finalize(KUSTOMIZE, "Kustomization", NAMESPACE, NAMESPACE)
    until(lambda: "finalizers" in removed(lab)["message"], "the definitions are being deleted")
    assert lab.kube.get("apps/v1", "Deployment", "source-controller", NAMESPACE)
    finalize(SOURCE, "GitRepository", "of-a-user", "default")
    remove(lab)


def run_and_die(cluster: Access, run: Callable[[Object], bool]) -> int:
    """Each run makes one write and dies at the next, until one survives, and `run` says that it is complete; returns how many died."""
    deaths, complete, deadline = 0, False, time.monotonic() + 900

    def attempt() -> None:
        nonlocal complete
        complete = run(lock.as_dict())

    while not complete:
        assert time.monotonic() < deadline, f"no run is complete after {deaths} deaths"
        lock = lease.acquire(cluster.kube, LAB["namespace"], LAB["name"], "a run that dies")
        died = mortal.dies_at(2, attempt)
        deaths += died
        lease.release(cluster.kube, lock)
        if not died and not complete:
            time.sleep(0.2)  # the API server deletes what the run has to wait for
    return deaths


def of_flux(cluster: Access) -> list[Object]:
    """The objects of all sets, with their inventories."""
    found: list[Object] = []
    for kind in KINDS:
        with contextlib.suppress(NotFound):  # the cluster does not serve it
            found += cluster.kube.list_all(*kind, label_selector=f"{OURS} in ({SETS})")
    return found


def named(items: list[Object]) -> set[str]:
    return {f"{item['kind']} {item['metadata']['name']}" for item in items}


def test_a_run_that_dies_at_any_write_is_simply_run_again(
    lab: Access, order: Object, flux_crds: list[Object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mortal.make_all_mortal(monkeypatch)
    crds = [crd for crd in flux_crds if crd["spec"]["names"]["kind"] in {kind for _version, kind in KINDS}]
    first = pinned(tmp_path, *crds, *map(deployment, CONTROLLERS))
    newer = pinned(tmp_path, *crds, deployment(CONTROLLERS[1], "v2.0.0"), version="v2.10.0")
    # Removed after a death, as if it had never been.
    assert mortal.dies_at(4, lambda: applied(lab, first, order)), "after its lock, an inventory and a definition"
    assert named(of_flux(lab)) & {f"CustomResourceDefinition {crd['metadata']['name']}" for crd in crds}
    lease.release_held(lab.kube, LAB["namespace"], LAB["name"], lease.read(lab.kube, LAB["namespace"], LAB["name"]).holder)
    remove(lab, order)
    assert of_flux(lab) == []
    _base, web = TWO_PROFILES.profiles
    upgraded = ProfilesLock((replace(web, version="2.0.0", dependsOn=()),), TWO_PROFILES.repositories)
    for manifests, lock_file in ((first, TWO_PROFILES), (newer, upgraded)):
        # What a run without deaths would do.
        accepted = with_profiles(order, lock_file)
        predicted = {
            f"{item['kind']} {item['name']}": item["action"] for item in applied(lab, manifests, accepted, check=True).result["objects"]
        }
        deaths = run_and_die(lab, lambda lock, of=(manifests, accepted): applied(lab, *of, lock=lock).result["part"]["ready"])
        assert deaths >= len([action for action in predicted.values() if action != "unchanged"])
        assert not applied(lab, manifests, accepted).changed
        present = of_flux(lab)
        inventories = [item for item in present if item["kind"] == "ConfigMap"]
        listed = [address for item in inventories for address in json.loads(item["data"]["objects"])]
        wanted = {name for name, action in predicted.items() if action != "deleted"}
        assert named(present) - named(inventories) == named(listed) == wanted
        assert {name for name in wanted if name.startswith("HelmRelease")} == {f"HelmRelease {item.name}" for item in lock_file.profiles}
    # The API server itself deletes what is in the namespace of the controllers. The run that makes the last write does
    # not die.
    by_runs = {name for name in wanted if not name.startswith("Deployment ")}
    assert run_and_die(lab, lambda lock: removed(lab, order, lock=lock)["ready"]) >= len(by_runs) - 1
    remove(lab, order)
