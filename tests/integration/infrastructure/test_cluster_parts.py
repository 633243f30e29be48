"""Access, storage and operators inside of a cluster: by tasks in this process, by the roles, and by the examples of the modules."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..plugins.test_examples import examples
from ..support.actions import answer
from ..support.inside import open_crd, serve_by_hub
from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH
from ..support.permissions import allowed
from ..support.playbooks import Answer, Task, play
from ..support.samples import hosted_cluster, pull_secret

LAB = {"name": "lab", "namespace": "clusters", "provider": "hypershift"}
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
OLM = "operators.coreos.com"
KINDS = [
    open_crd(OLM, "v1alpha1", "Subscription", "subscriptions"),
    open_crd(OLM, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions"),
    open_crd(OLM, "v1", "OperatorGroup", "operatorgroups"),
    open_crd("user.openshift.io", "v1", "Group", "groups", namespaced=False),
]
USERS = "ann:$2y$05$hunter2-do-not-show\n"
CLASSES = {"fast": {"provisioner": "csi.example.com"}, "scratch": {"backend": "local"}}
OPERATORS = [{"name": "terminal"}, {"name": "gpu", "namespace": "gpu-operator"}]


@pytest.fixture(scope="module")
def lab(quick_hub: Access) -> Iterator[Access]:
    """The cluster of the examples, inside of which the hub itself is."""
    namespaces = ("clusters", "openshift-operators")
    for namespace in namespaces:
        quick_hub.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    quick_hub.install_crds(*KINDS)
    quick_hub.kubectl("create", "secret", "generic", "lab-users", "-n", "clusters", f"--from-literal=htpasswd={USERS}")
    wanted = {"version": RELEASE, "node_requests": [{"resourceClass": "fc430", "numberOfNodes": 1}]}
    made = answer("cluster", **on(quick_hub), **wanted, secrets={"pull_secret": '{"auths": {}}'})
    assert not made.failed, made.result
    serve_by_hub(quick_hub, "lab", "clusters")
    yield quick_hub
    for module in ("cluster_operators", "cluster_storage", "cluster_access"):
        until(lambda: removed(quick_hub, module), f"the objects of {module} are removed")  # noqa: B023 - called at once
    quick_hub.kubectl("delete", "crd", *(crd["metadata"]["name"] for crd in KINDS))
    quick_hub.kubectl("delete", "hostedclusters,nodepools", "--all", "-n", "clusters")
    quick_hub.kubectl("delete", "namespace", *namespaces)


def on(hub: Access) -> Object:
    return {"kubeconfig": str(hub.kubeconfig), **LAB}


def applied(hub: Access, module: str, *, check: bool = False, **options: Any) -> Answer:
    done = answer(module, check=check, **on(hub), **options)
    assert not done.failed, done.result
    return done


def removed(hub: Access, module: str) -> bool:
    return bool(applied(hub, module, state="absent").result["part"]["ready"])


def names(hub: Access, api_version: str, kind: str) -> set[str]:
    mine = "openfleet.clusters/resource-set"
    return {item["metadata"]["name"] for item in hub.kube.list_all(api_version, kind, label_selector=mine)}


@contextlib.contextmanager
def driver(hub: Access, name: str) -> Iterator[None]:
    item: Object = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": {}}
    hub.kube.create(item)
    yield
    hub.kube.delete(item)


def test_storage_classes_are_predicted_applied_pruned_and_removed(lab: Access) -> None:
    assert applied(lab, "cluster_storage", check=True, classes=CLASSES, default="fast").changed
    assert names(lab, "storage.k8s.io/v1", "StorageClass") == set()
    first = applied(lab, "cluster_storage", classes=CLASSES, default="fast")
    assert first.changed and first.result["part"]["reason"] == "DriverMissing"
    assert names(lab, "storage.k8s.io/v1", "StorageClass") == {"fast", "scratch"}
    with driver(lab, "csi.example.com"):
        again = applied(lab, "cluster_storage", classes=CLASSES, default="fast")
        assert not again.changed and again.result["part"]["ready"]
    one = applied(lab, "cluster_storage", classes={"scratch": CLASSES["scratch"]}, default="scratch")
    assert one.changed and names(lab, "storage.k8s.io/v1", "StorageClass") == {"scratch"}
    (scratch,) = lab.kube.list_all("storage.k8s.io/v1", "StorageClass", label_selector="openfleet.clusters/resource-set=storage")
    assert scratch["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    assert applied(lab, "cluster_storage", state="absent").result["part"] == {"ready": True, "reason": "Removed", "message": ""}
    assert not applied(lab, "cluster_storage", state="absent").changed
    assert names(lab, "storage.k8s.io/v1", "StorageClass") == set()


def test_access_binds_groups_and_users_and_an_administrator(lab: Access) -> None:
    wanted = {
        "groups": [{"name": "blue", "users": ["ann"]}],
        "bindings": [{"role": "view", "groups": ["blue"]}, {"role": "edit", "namespace": "default", "users": ["bob"]}],
        "admin_account": "robot",
    }
    assert applied(lab, "cluster_access", **wanted).changed
    assert not applied(lab, "cluster_access", **wanted).changed
    questions = [
        ("cat", ["blue"], ("get", "pods"), True),
        ("bob", [], ("delete", "pods", "", "default"), True),
        ("bob", [], ("delete", "pods", "", "kube-system"), False),
        ("system:serviceaccount:kube-system:robot", [], ("*", "*", "*"), True),
    ]
    expected = [answer for _user, _groups, _permission, answer in questions]

    def answers() -> list[bool]:
        return [allowed(lab.kube.impersonate(user, groups), *permission) for user, groups, permission, _answer in questions]

    with contextlib.suppress(UserError):
        until(lambda: answers() == expected, "the server knows the roles", 60)
    assert answers() == expected
    assert names(lab, "user.openshift.io/v1", "Group") == {"blue"}
    assert applied(lab, "cluster_access", state="absent").result["part"]["reason"] == "Removed"
    assert names(lab, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding") == set()


def test_operators_are_installed_reported_and_uninstalled(lab: Access) -> None:
    first = applied(lab, "cluster_operators", operators=OPERATORS)
    assert first.changed and first.result["part"]["reason"] == "Installing"
    assert names(lab, f"{OLM}/v1alpha1", "Subscription") == {"terminal", "gpu"}

    def install(name: str, namespace: str, phase: str) -> None:
        """What OLM does."""
        version = {
            "apiVersion": f"{OLM}/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": f"{name}.v1", "namespace": namespace},
        }
        lab.kube.apply(version | {"spec": {"version": "1.0.0"}, "status": {"phase": phase, "message": "no image"}}, force=True)
        subscription = lab.kube.get(f"{OLM}/v1alpha1", "Subscription", name, namespace)
        lab.kube.patch(subscription, {"status": {"installedCSV": f"{name}.v1", "state": "AtLatestKnown"}})

    install("terminal", "openshift-operators", "Succeeded")
    install("gpu", "gpu-operator", "Failed")
    failed = applied(lab, "cluster_operators", operators=OPERATORS)
    assert not failed.changed
    assert failed.result["part"] == {"ready": False, "reason": "OperatorFailed", "message": "The operator gpu has failed: no image"}
    assert [(each["name"], each["ready"], each["version"]) for each in failed.result["operators"]] == [
        ("terminal", True, "1.0.0"),
        ("gpu", False, "1.0.0"),
    ]
    install("gpu", "gpu-operator", "Succeeded")
    assert applied(lab, "cluster_operators", operators=OPERATORS).result["part"]["ready"]

    # What OLM has installed for a subscription would stay without it.
    predicted = applied(lab, "cluster_operators", check=True, operators=OPERATORS[1:])
    assert {"kind": "ClusterServiceVersion", "name": "terminal.v1", "action": "deleted"} in predicted.result["objects"]
    assert applied(lab, "cluster_operators", operators=OPERATORS[1:]).changed
    left = {item["metadata"]["name"] for item in lab.kube.list_all(f"{OLM}/v1alpha1", "ClusterServiceVersion")}
    assert left == {"gpu.v1"} and names(lab, f"{OLM}/v1alpha1", "Subscription") == {"gpu"}
    until(lambda: applied(lab, "cluster_operators", state="absent").result["part"]["ready"], "the operators are removed")
    assert lab.kube.list_all(f"{OLM}/v1alpha1", "ClusterServiceVersion") == []


def test_a_cluster_that_is_not_available_yet_is_reported_and_no_failure(lab: Access) -> None:
    slow = hosted_cluster("clusters", "slow", fault="never-available")
    for item in (pull_secret("clusters"), slow):
        lab.kube.create(item)
    options = on(lab) | {"name": "slow"}
    for module, wanted in (
        ("cluster_storage", {"classes": CLASSES}),
        ("cluster_access", {}),
        ("cluster_operators", {"operators": OPERATORS}),
    ):
        done = answer(module, **options, **wanted)
        assert not done.failed and not done.changed
        assert (done.result["part"]["ready"], done.result["part"]["reason"]) == (False, "NotReadyYet"), done.result
        assert "has no kubeconfig yet" in done.result["part"]["message"]
        assert answer(module, **options | {"name": "none"}, state="absent").result["part"]["ready"], "nothing is in no cluster"
    assert "There is no HostedCluster" in answer("cluster_storage", **options | {"name": "none"}, classes=CLASSES).message
    mistake = answer("cluster_storage", **on(lab), classes={"fast": {}}).message
    assert "storage class fast" in mistake and "provisioner is required" in mistake
    assert "does not support add-ons" in answer("cluster_addon", **on(lab), addon="logging").message


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ({"htpasswd": {"name": "no-such", "key": "htpasswd"}}, "There is no Secret clusters/no-such with the key htpasswd"),
        ({"htpasswd": {"name": "lab-users", "key": "other"}}, "There is no Secret clusters/lab-users with the key other"),
        ({"htpasswd": {"name": "lab-users", "key": "htpasswd", "namespace": "kube-system"}}, "must have name and key"),
        ({"htpasswd": "lab-users"}, "must have name and key"),
    ],
)
def test_a_reference_to_a_secret_that_does_not_exist_is_one_message(lab: Access, references: Object, message: str) -> None:
    before = lab.kube.get("hypershift.openshift.io/v1beta1", "HostedCluster", "lab", "clusters")["metadata"]["generation"]
    refused = answer("cluster_identity_provider", **on(lab), identity_provider="local", type="HTPasswd", secret_refs=references)
    assert message in refused.message
    assert lab.kube.get("hypershift.openshift.io/v1beta1", "HostedCluster", "lab", "clusters")["metadata"]["generation"] == before


def include(role: str, **variables: Any) -> Task:
    return {"name": role, "ansible.builtin.include_role": {"name": f"openfleet.clusters.{role}"}, "vars": variables}


def roles(state: str) -> list[Task]:
    local = {"name": "local", "type": "HTPasswd", "secret_refs": {"htpasswd": {"name": "lab-users", "key": "htpasswd"}}}
    ldap = {"name": "people", "type": "LDAP", "settings": {"url": "ldaps://ldap.example.com/ou=people?uid", "attributes": {"id": ["dn"]}}}
    adapter = {"adapter": "acme.site.storage", "pool": "ssd"}
    return [
        include(
            "cluster_identity",
            cluster_identity_state=state,
            cluster_identity_providers=[local, ldap],
            cluster_identity_bindings=[{"role": "view", "groups": ["readers"]}],
        ),
        include(
            "cluster_storage",
            cluster_storage_state=state,
            cluster_storage_default="fast",
            cluster_site={"storage_classes": CLASSES, "infrastructure": {"storage": adapter}},
        ),
        include("cluster_addons", cluster_addons_state=state, cluster_addons_operators=OPERATORS),
    ]


def test_roles_apply_report_and_remove_their_parts(lab: Access, tmp_path: Path) -> None:
    """The adapter of the site adds a parameter to each remote class."""
    adapter = tmp_path / "collections/ansible_collections/acme/site/roles/storage/tasks/main.yml"
    adapter.parent.mkdir(parents=True)
    adapter.write_text(
        """
- name: Set the pool of the site
  ansible.builtin.set_fact:
    cluster_storage_result:
      classes: "{{ cluster_storage_request.classes | combine({'fast': {'parameters': pool}}, recursive=true) }}"
  vars:
    pool:
      pool: "{{ cluster_storage_request.settings.pool }}"
""",
        encoding="utf-8",
    )
    paths = os.pathsep.join([str(tmp_path / "collections"), str(Path(sys.prefix) / "collections")])
    report: Task = {"name": "report", "ansible.builtin.debug": {"var": "cluster_infrastructure"}}

    def played(*tasks: Task) -> Any:
        defaults = {"group/openfleet.clusters.cluster": LAB}
        block: Task = {"name": "roles", "module_defaults": defaults, "block": [*tasks, report]}
        done = play(tmp_path, [block], defaults={"kubeconfig": str(lab.kubeconfig)}, environment={"ANSIBLE_COLLECTIONS_PATH": paths})
        assert done.code == 0, done.output
        assert "hunter2" not in done.output
        return done

    twice = played(*roles("present"), *roles("present"))
    steps = [
        "cluster_identity : Configure the identity providers",
        "cluster_identity : Apply the groups and permissions in the cluster",
        "cluster_storage : Apply the storage classes in the cluster",
        "cluster_addons : Install the operators in the cluster",
    ]
    assert [twice.fine(f"openfleet.clusters.{name}").changed for name in steps] == [False] * 4, (
        "the last answers are those of the second time"
    )
    parts = twice["report"].result["cluster_infrastructure"]
    assert {name: (part["ready"], part["reason"]) for name, part in parts.items()} == {
        "identity": (True, "AccessReady"),
        "storage": (False, "DriverMissing"),
        "addons": (False, "Installing"),
    }
    oauth = lab.get("hostedcluster", "lab", "-n", "clusters")["spec"]["configuration"]["oauth"]
    assert [(each["name"], each["type"]) for each in oauth["identityProviders"]] == [("local", "HTPasswd"), ("people", "LDAP")]
    assert lab.kube.get("storage.k8s.io/v1", "StorageClass", "fast")["parameters"] == {"pool": "ssd"}

    removed = played(*roles("absent"))
    parts = removed["report"].result["cluster_infrastructure"]
    assert {name for name, part in parts.items() if part["ready"]} >= {"identity", "storage"}
    assert "oauth" not in lab.get("hostedcluster", "lab", "-n", "clusters")["spec"].get("configuration", {})
    assert names(lab, "storage.k8s.io/v1", "StorageClass") == names(lab, f"{OLM}/v1alpha1", "Subscription") == set()


def test_examples(lab: Access, tmp_path: Path) -> None:
    named = ("cluster_storage", "cluster_access", "cluster_operators")
    played = play(tmp_path, [each for module in named for each in examples(module)], defaults={"kubeconfig": str(lab.kubeconfig)})
    assert played.code == 0, played.output
    assert played["Show whether the driver is installed"].result["msg"] == "DriverMissing"
    assert played["Show the operators that are not ready yet"].result["msg"] == ["web-terminal", "gpu-operator-certified"]


def test_examples_of_addons(lab: Access, tmp_path: Path) -> None:
    with standing_in() as service:
        of_ocm = on(lab) | {"provider": "ocm"}
        where = {"cloud_provider": "aws", "region": "us-east-1", "node_requests": [{"resourceClass": "m5.xlarge", "numberOfNodes": 2}]}
        settings = {"url": service.url, "token_url": f"{service.url}{TOKEN_PATH}"}
        made = answer("cluster", **of_ocm, **where, settings=settings, secrets={"token": OFFLINE_TOKEN}, version="4.18.1")
        assert not made.failed, made.result
        early = answer("cluster_addon", **of_ocm, addon="logging-operator")
        assert not early.changed and early.result["part"]["reason"] == "NotReadyYet"
        service.advance()
        service.advance()
        install, *rest = examples("cluster_addon")
        again = {**install, "name": "again"}
        played = play(tmp_path, [install, *rest, again], defaults={"kubeconfig": str(lab.kubeconfig)})
        assert played.code == 0, played.output
        assert (played.fine("Install an add-on").changed, played.fine("again").changed) == (True, False)
        assert played["Show whether it is ready"].result["msg"] == "Installing"
        assert json.dumps("small") not in played.output
        service.advance()
        service.advance()
        assert answer("cluster_addon", **of_ocm, addon="logging-operator", parameters={"size": "small"}).result["part"]["ready"]
        removed = answer("cluster", **of_ocm, state="absent")
        service.advance()
        assert not removed.failed and not answer("cluster", **of_ocm, state="absent").failed
