"""`make demo`: the main job from nothing to a running cluster and back, with a line for each stage."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..sandbox import gobuild
from ..sandbox.access import Access, until
from ..sandbox.processes import write_private
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import Stage, heading, run_command, stage

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = Path("docs/examples/hosted_cluster.yaml")
STATE = Path(os.environ.get("OPENFLEET_SANDBOX", ROOT / ".sandbox"))
NAMESPACE = NAME = "demo"
STAGE_SECONDS = 300


def main() -> int:
    heading("openfleet.clusters: a cluster on a hub of this machine")
    gobuild.build(s3=False)
    sandbox = Sandbox(STATE)
    with running(sandbox) as hub, cluster_objects(hub):
        with stage("Control plane") as shown:
            cluster = until_condition(hub, shown, "hostedcluster", "Available")
            endpoint = cluster["status"]["controlPlaneEndpoint"]
            shown.note(f"available at {endpoint['host']}:{endpoint['port']}")
        with stage("Nodes") as shown:
            pool = until_condition(hub, shown, "nodepool", "Ready", f"{NAME}-workers")
            shown.note(f"{pool['status']['replicas']} Ready")
        kubeconfig = sandbox.state / f"{NAME}.kubeconfig"
        secret = hub.get("secret", cluster["status"]["kubeconfig"]["name"], "-n", NAMESPACE)
        write_private(kubeconfig, base64.b64decode(secret["data"]["kubeconfig"]))
        heading(f"$ kubectl --kubeconfig={relative(kubeconfig)} get nodes")
        print(Access(kubeconfig).kubectl("get", "nodes").stdout)
        version = cluster["status"]["version"]["desired"]["version"]
    summary(version)
    return 0


@contextlib.contextmanager
def running(sandbox: Sandbox) -> Iterator[Access]:
    """The hub: one that runs already is used and left alone, else one that ends with the demo."""
    ours = sandbox.holder() is None
    with stage("Hub with its CRDs" if ours else "Hub is running already"):
        sandbox.up(attached=ours)
    try:
        yield Access(sandbox.kubeconfig())
    finally:
        if ours:
            with stage("Hub ended: no process, no port, no file is left"):
                sandbox.down()


@contextlib.contextmanager
def cluster_objects(hub: Access) -> Iterator[None]:
    with stage(f"HostedCluster {NAME} with a NodePool of 2 applied"):
        hub.kubectl("apply", "-f", str(ROOT / EXAMPLE))
    try:
        yield
    finally:
        with stage(f"HostedCluster {NAME} and all that belonged to it deleted"):
            hub.kubectl("delete", "hostedcluster", NAME, "-n", NAMESPACE, f"--timeout={STAGE_SECONDS}s")
            hub.kubectl("delete", "namespace", NAMESPACE, f"--timeout={STAGE_SECONDS}s")


def until_condition(hub: Access, shown: Stage, kind: str, wanted: str, name: str = NAME) -> Any:
    """Wait for a condition to be True, and show what it says meanwhile."""

    def met() -> Any:
        item = hub.get(kind, name, "-n", NAMESPACE)
        for condition in item.get("status", {}).get("conditions", []):
            if condition["type"] == wanted:
                shown.note(condition["message"])
                return item if condition["status"] == "True" else None
        return None

    return until(met, f"{kind} {name} is {wanted}", STAGE_SECONDS)


def relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def summary(version: str) -> None:
    print(f"""
What was built: a hub (etcd, kube-apiserver and kube-controller-manager {gobuild.KUBERNETES_VERSION}), and on it the HostedCluster
{NAMESPACE}/{NAME}, release {version}, with an API server of its own and 2 nodes. The hub, the hosted API server and all objects
were real; HyperShift's operator and the machines behind the nodes were a stand-in.
Its kubeconfig was in the hub's secret {NAMESPACE}/{NAME}-admin-kubeconfig.

Try next, and keep it running:
  make sandbox-up
  . .venv/bin/activate
  export KUBECONFIG=$(openfleet-sandbox kubeconfig)
  kubectl apply -f {EXAMPLE}
  kubectl get hostedclusters,nodepools -A
  make sandbox-down""")


if __name__ == "__main__":
    run_command(main)
