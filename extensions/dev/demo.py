"""`make demo`: an order from nothing to a running cluster, scaled, and back to nothing, with a line for each stage.

It is carried out by HyperShift, or by the provider that is named, as in `make demo PROVIDER=capi`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..sandbox import gobuild
from ..sandbox.access import Access, until
from ..sandbox.processes import tail, write_private
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import UserError, heading, run_command, stage

ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("OPENFLEET_SANDBOX", ROOT / ".sandbox"))
NAMESPACE, NAME = "orders", "demo"
WORKING_NAMESPACE = f"{NAMESPACE}-{NAME}"
STEPS = ("Accepted", "NamespaceCreated", "ControlPlaneCreated", "ControlPlaneAvailable", "NodesReady", "ClusterAvailable")
WAIT_SECONDS = 300


@dataclass(frozen=True)
class Show:
    """What differs between the providers that the demo can be given with."""

    example: Path
    resource_class: str
    secret: str
    key: str
    built: str
    up: str = "make sandbox-up"
    kinds: str = "hostedclusters,nodepools"
    # An in-memory API server makes no tables.
    columns: tuple[str, ...] = ()
    capi: bool = False


SHOWS = {
    "hypershift": Show(
        example=Path("docs/examples/cluster_order.yaml"),
        resource_class="fc430",
        secret=f"{NAME}-admin-kubeconfig",
        key="kubeconfig",
        built="""a HostedCluster with an API server of its own and 2, then 3 nodes. The hub, the hosted API server and all objects
were real; HyperShift's operator and the machines behind the nodes were a stand-in.""",
    ),
    "capi": Show(
        example=Path("docs/examples/capi_order.yaml"),
        resource_class="small",
        secret=f"{NAME}-kubeconfig",
        key="value",
        built=f"""a Cluster with a control plane and 2, then 3 workers. The hub, all objects on it and Cluster API
{gobuild.CLUSTER_API_VERSION} with its webhooks were real; its machines and its API server were in the memory of a provider for tests.""",
        up="openfleet-sandbox up --capi",
        kinds="clusters,machinedeployments,machines",
        columns=(
            "-o",
            "custom-columns=NAME:.metadata.name,READY:.status.conditions[?(@.type=='Ready')].status,VERSION:.status.nodeInfo.kubeletVersion",
        ),
        capi=True,
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description="Show an order from nothing to a cluster and back.")
    parser.add_argument("provider", nargs="?", choices=SHOWS, default="hypershift")
    show = SHOWS[parser.parse_args().provider]
    heading("openfleet.clusters: from an order to a cluster, on a hub of this machine")
    gobuild.build(capi=show.capi)
    sandbox = Sandbox(STATE)
    with running(sandbox, show) as hub, order(hub, show):
        with playbook(hub, "create_cluster"):
            show_progress(hub, "2 of 2 ready")
        heading("$ kubectl get clusterorders -n orders")
        print(hub.kubectl("get", "clusterorders", "-n", NAMESPACE).stdout)
        show_nodes(hub, sandbox, show)
        with stage("Order changed: 3 nodes instead of 2"):
            wanted = json.dumps({"spec": {"nodeRequests": [{"resourceClass": show.resource_class, "numberOfNodes": 3}]}})
            hub.kubectl("patch", "clusterorder", NAME, "-n", NAMESPACE, "--type=merge", "-p", wanted)
        with playbook(hub, "create_cluster"):
            show_progress(hub, "3 of 3 ready", steps=("NodesReady",))
        show_nodes(hub, sandbox, show)
    summary(show)
    return 0


@contextlib.contextmanager
def running(sandbox: Sandbox, show: Show) -> Iterator[Access]:
    """The hub: one that runs already is used and left alone, else one that ends with the demo."""
    ours = sandbox.holder() is None
    with stage("Hub with its CRDs" if ours else "Hub is running already"):
        sandbox.up(attached=ours, capi=show.capi)
    try:
        yield Access(sandbox.kubeconfig())
    finally:
        if ours:
            with stage("Hub ended: no process, no port, no file is left"):
                sandbox.down()


@contextlib.contextmanager
def order(hub: Access, show: Show) -> Iterator[None]:
    """The order of the example, deleted at the end with all that was made for it."""
    with stage(f"ClusterOrder {NAME} for a cluster with 2 nodes created"):
        hub.kubectl("apply", "-f", str(ROOT / show.example))
    try:
        yield
    finally:
        with stage("Cluster, namespace, finalizers and order deleted"), playbook(hub, "delete_cluster"):
            until(lambda: hub.get("clusterorder", NAME, "-n", NAMESPACE) is None, "the order is gone", WAIT_SECONDS)
            if hub.get("namespace", WORKING_NAMESPACE) is not None:
                raise UserError(f"The order is gone, and its namespace {WORKING_NAMESPACE} is still there.")


@contextlib.contextmanager
def playbook(hub: Access, name: str) -> Iterator[None]:
    """The playbook at work while the body looks on; if it fails, the end of its output is shown."""
    variables = {"cluster_order_name": NAME, "cluster_order_namespace": NAMESPACE, "cluster_wait_timeout": WAIT_SECONDS}
    command = ["ansible-playbook", f"openfleet.clusters.{name}", "-e", json.dumps(variables)]
    with tempfile.NamedTemporaryFile(prefix=f"{name}-") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"K8S_AUTH_KUBECONFIG": str(hub.kubeconfig)})
        try:
            yield
            failed = process.wait()
        except BaseException:
            process.terminate()
            failed = process.wait()
            raise
        finally:
            if failed:
                print(tail(Path(log.name)))
        if failed:
            raise UserError(f"The playbook openfleet.clusters.{name} failed; the end of its output is above.")


def show_progress(hub: Access, nodes: str, steps: tuple[str, ...] = STEPS) -> None:
    """A line for each condition as it becomes True, and one for the phase."""
    for step in steps:
        with stage(f"  {step}") as shown:
            shown.note(until(partial(message, hub, step, nodes), f"the order is {step}", WAIT_SECONDS))
    with stage("  Phase") as shown:
        until(lambda: status(hub).get("phase") == "Ready", "the order is Ready", WAIT_SECONDS)
        shown.note(f"Ready at {status(hub)['apiURL']}")


def status(hub: Access) -> dict[str, Any]:
    found: dict[str, Any] = hub.get("clusterorder", NAME, "-n", NAMESPACE).get("status", {})
    return found


def message(hub: Access, kind: str, nodes: str) -> str:
    """What a condition says once it is True, nothing before."""
    for condition in status(hub).get("conditions", []):
        if condition["type"] == kind and condition["status"] == "True" and (kind != "NodesReady" or condition["message"] == nodes):
            return str(condition["message"])
    return ""


def show_nodes(hub: Access, sandbox: Sandbox, show: Show) -> None:
    """What the new cluster itself says, asked with its own kubeconfig."""
    secret = hub.get("secret", show.secret, "-n", WORKING_NAMESPACE)
    kubeconfig = sandbox.state / f"{NAME}.kubeconfig"
    write_private(kubeconfig, base64.b64decode(secret["data"][show.key]))
    shown = kubeconfig.relative_to(ROOT) if kubeconfig.is_relative_to(ROOT) else kubeconfig
    heading(f"$ kubectl --kubeconfig={shown} get nodes")
    print(Access(kubeconfig).kubectl("get", "nodes", *show.columns).stdout)


def summary(show: Show) -> None:
    print(f"""
What was built: a hub (etcd, kube-apiserver and kube-controller-manager {gobuild.KUBERNETES_VERSION}), and on it, from the order
{NAMESPACE}/{NAME}, {show.built}
Its kubeconfig was in the hub's secret {WORKING_NAMESPACE}/{show.secret}.

Try next, and keep it running:
  . .venv/bin/activate
  {show.up}
  export KUBECONFIG=$(openfleet-sandbox kubeconfig)
  kubectl apply -f {show.example}
  ansible-playbook openfleet.clusters.create_cluster -e cluster_wait_timeout=120
  kubectl get clusterorders,{show.kinds} -A
  make sandbox-down""")


if __name__ == "__main__":
    run_command(main)
