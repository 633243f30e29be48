"""`make demo`: an order from nothing to a running cluster, scaled, and back to nothing, with a line for each stage.

The rulebook does all the work; the demo only shows it. HyperShift creates the cluster, or the named provider, as in
`make demo PROVIDER=capi`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ...plugins.module_utils.orders.model import Names
from ..sandbox import gobuild
from ..sandbox.access import Access, until
from ..sandbox.build import build
from ..sandbox.processes import free_port, write_private
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import Stage, UserError, heading, run_command, stage
from .engine import Engine, running_engine
from .rules_engine import ROOT, STATE

NAMESPACE, NAME = "orders", "demo"
WORKING_NAMESPACE = Names().working_namespace(NAMESPACE, NAME)
TUTORIAL = Path("docs/tutorial.md")
STEPS = ("Accepted", "NamespaceCreated", "ControlPlaneCreated", "ControlPlaneAvailable", "NodesReady", "ClusterAvailable")
WAIT_SECONDS = 300
ACTION = re.compile(r"controller - INFO - \w+ of .*")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Show:
    """What differs between the providers of the demo."""

    example: Path
    resource_class: str
    secret: str
    key: str
    built: str
    serve: str = "make serve"
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
        serve="make serve PROVIDER=capi",
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
    build(capi=show.capi)
    sandbox = Sandbox(STATE)
    hub_stays = sandbox.holder() is not None
    with running_engine(sandbox, free_port(), show.capi) as engine:
        hub = Access(sandbox.kubeconfig())
        with order(hub, engine, show, hub_stays):
            show_progress(hub, engine, "2 of 2 nodes ready")
            heading(f"$ kubectl get clusterorders -n {NAMESPACE}")
            print(hub.kubectl("get", "clusterorders", "-n", NAMESPACE).stdout)
            show_nodes(hub, engine, show)
            with stage("Order changed: 3 nodes instead of 2"):
                wanted = json.dumps({"spec": {"nodeRequests": [{"resourceClass": show.resource_class, "numberOfNodes": 3}]}})
                hub.kubectl("patch", "clusterorder", NAME, "-n", NAMESPACE, "--type=merge", "-p", wanted)
            show_progress(hub, engine, "3 of 3 nodes ready", steps=("NodesReady",))
            show_nodes(hub, engine, show)
            with stage("Order deleted; it stays until its cluster is deleted"):
                hub.kubectl("delete", "clusterorder", NAME, "-n", NAMESPACE, "--wait=false")
            show_webhooks(hub, engine)
            show_end(hub, engine)
    summary(show)
    return 0


@contextlib.contextmanager
def order(hub: Access, engine: Engine, show: Show, hub_stays: bool) -> Iterator[None]:
    """The order of the example. On a hub that stays it is deleted also after an interruption, by a second engine if the first has ended."""
    with stage(f"ClusterOrder {NAME} for a cluster with 2 nodes created"):
        hub.kubectl("apply", "-f", str(ROOT / show.example))
    try:
        yield
    except BaseException:
        if hub_stays:
            hub.kubectl("delete", "clusterorder", NAME, "-n", NAMESPACE, "--wait=false", "--ignore-not-found")
            if not engine.is_running:
                with stage("Rulebook started again to delete the cluster"):
                    engine.start(hub.kubeconfig)
                    engine.until_ready()
            show_end(hub, engine)
        raise


def show_progress(hub: Access, engine: Engine, nodes: str, steps: tuple[str, ...] = STEPS) -> None:
    """A line for each condition as it becomes True, and one for the phase."""
    for step in steps:
        with stage(f"  {step}") as shown:
            shown.note(watched(engine, shown, partial(message, hub, step, nodes), f"the order is {step}"))
    with stage("  Phase") as shown:
        watched(engine, shown, lambda: status(hub).get("phase") == "Ready", "the order is Ready")
        shown.note(f"Ready at {status(hub)['apiURL']}")


def show_webhooks(hub: Access, engine: Engine) -> None:
    """The webhook of another controller, which sends the whole order: without the token, and with it."""
    sent = hub.get("clusterorder", NAME, "-n", NAMESPACE)
    for who, token, answer in (("without a token", "", 401), ("with the token", engine.token_file.read_text(), 202)):
        with stage(f"POST /delete-hosted-cluster {who}") as shown:
            code = engine.post("delete-hosted-cluster", sent, token)
            shown.note(str(code))
            if code != answer:
                raise UserError(f"The response to the webhook {who} was {code} instead of {answer}.")


def show_end(hub: Access, engine: Engine) -> None:
    with stage("Cluster, namespace, finalizers and order deleted") as shown:
        watched(engine, shown, lambda: hub.get("clusterorder", NAME, "-n", NAMESPACE) is None, "the order is deleted")
        if hub.get("namespace", WORKING_NAMESPACE) is not None:
            raise UserError(f"The order is deleted, but its namespace {WORKING_NAMESPACE} still exists.")


def watched(engine: Engine, shown: Stage, condition: Callable[[], Result], what: str) -> Result:
    """Wait for the condition, and show the actions in the engine's log meanwhile."""

    def poll() -> Result:
        engine.check()
        for line in engine.new_lines():
            if action := ACTION.search(line):
                shown.say(f"    {action[0]}")
        return condition()

    return until(poll, what, WAIT_SECONDS)


def status(hub: Access) -> dict[str, Any]:
    found: dict[str, Any] = hub.get("clusterorder", NAME, "-n", NAMESPACE).get("status", {})
    if found.get("phase") == "Failed":
        raise UserError(f"The order has failed: {found.get('failure', {}).get('message', 'its status has no reason')}")
    return found


def message(hub: Access, kind: str, nodes: str) -> str:
    """The message of a condition once it is True, nothing before."""
    for condition in status(hub).get("conditions", []):
        if condition["type"] == kind and condition["status"] == "True" and (kind != "NodesReady" or condition["message"] == nodes):
            return str(condition["message"])
    return ""


def show_nodes(hub: Access, engine: Engine, show: Show) -> None:
    """The nodes of the new cluster, read with its own kubeconfig."""
    secret = hub.get("secret", show.secret, "-n", WORKING_NAMESPACE)
    kubeconfig = engine.folder / f"{NAME}.kubeconfig"
    write_private(kubeconfig, base64.b64decode(secret["data"][show.key]))
    shown = kubeconfig.relative_to(ROOT) if kubeconfig.is_relative_to(ROOT) else kubeconfig
    heading(f"$ kubectl --kubeconfig={shown} get nodes")
    print(Access(kubeconfig).kubectl("get", "nodes", *show.columns).stdout)


def summary(show: Show) -> None:
    print(f"""
What was built: a hub (etcd, kube-apiserver and kube-controller-manager {gobuild.KUBERNETES_VERSION}), and on it, from the order
{NAMESPACE}/{NAME}, {show.built}
Its kubeconfig was in the hub's secret {WORKING_NAMESPACE}/{show.secret}.

Try next, and keep it running; it prints the address of a page for its orders:
  {show.serve}
and in another shell:
  . .venv/bin/activate
  export KUBECONFIG=$(openfleet-sandbox kubeconfig)
  kubectl apply -f {show.example}
  kubectl get clusterorders,{show.kinds} -A
The tutorial explains each step: {TUTORIAL}""")


if __name__ == "__main__":
    run_command(main)
