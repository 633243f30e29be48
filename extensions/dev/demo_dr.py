"""`make demo-dr`: a workload survives the loss of its cluster and is relocated back, on two clusters without a hub.

A rulebook on each cluster does all the work, and playbooks request it; the demo kills, writes data, and shows what has survived.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from ..sandbox import gobuild
from ..sandbox.build import build
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import UserError, heading, run_command, stage
from . import dr_timeline
from .dr_clusters import BUCKET, CLUSTERS, EAST, POLICY, WEST, WORKLOAD, DrClusters, running_clusters
from .rules_engine import STATE

PAGE = Path("docs/dr_walkthrough.md")
COMMON = {"dr_bucket": BUCKET, "dr_workload_namespace": WORKLOAD.namespace, "dr_workload": WORKLOAD.name, "dr_wait": True}


def main() -> int:
    heading("openfleet.clusters: a workload survives its cluster, on two clusters of this machine without a hub")
    build(s3=True, hypershift=False)
    sandbox = Sandbox(STATE.with_name(f"{STATE.name}-dr"))
    if sandbox.holder() is not None:
        raise UserError("`make demo-dr` runs in this checkout already: wait for its end.")
    with running_clusters(sandbox) as clusters:
        protect(clusters)
        lose_east(clusters)
        fail_over(clusters)
        return_east(clusters)
        relocate(clusters)
        heading("The timeline, from the history in the bucket:")
        print("\n".join(dr_timeline.table(clusters.history(), clusters.marks)), flush=True)
    summary()
    return 0


def protect(clusters: DrClusters) -> None:
    with stage(f"Application {WORKLOAD} runs on east"):
        clusters.create_application()
        clusters.until(lambda: clusters.runs(EAST), "the application runs on east")
    selector = {"matchLabels": {"app": WORKLOAD.name}}
    ask(clusters, "protect", EAST, dr_cluster=EAST, dr_policy=POLICY, dr_pvc_selector=selector)
    with stage("  Its data is replicated to west"):
        clusters.write(EAST, "order 1", "order 2")
        clusters.until(lambda: "order 2" in clusters.read(WEST) and clusters.is_protected(EAST, "Deployed"), "west has the data")


def lose_east(clusters: DrClusters) -> None:
    with stage("Replication lags, and order 3 is written on east only"):
        clusters.set_fault(EAST, "no-sync")
        clusters.write(EAST, "order 3")
    with stage("east killed with -9: etcd, API server, controllers, rulebook"):
        clusters.kill(EAST)


def fail_over(clusters: DrClusters) -> None:
    ask(clusters, "failover", WEST, dr_cluster=WEST)
    clusters.until(lambda: clusters.phase(WEST) == "FailedOver", "the DRPlacementControl of west shows it")
    show_drpc(clusters, WEST)
    expect(clusters, WEST, ["order 1", "order 2"], "order 3 is lost")
    with stage("Order 4 written on west"):
        clusters.until(lambda: clusters.runs(WEST), "the application runs on west")
        clusters.write(WEST, "order 4")


def return_east(clusters: DrClusters) -> None:
    with stage("east started again; its workload believes that it is primary"):
        clusters.start()
        clusters.set_fault(EAST, "")
        clusters.mark("east is back")
    with stage("  Its rulebook"):
        clusters.start_engine(EAST)
    with stage("  Demoted, its workload stopped, the data of west copied"):
        clusters.until(lambda: clusters.is_protected(WEST, "FailedOver") and not clusters.runs(EAST), "east is the peer of west")
    expect(clusters, EAST, ["order 1", "order 2", "order 4"], "the same as on west")


def relocate(clusters: DrClusters) -> None:
    with stage("Replication lags, and order 5 is written on west only"):
        clusters.set_fault(WEST, "lag=3600")
        clusters.write(WEST, "order 5")
    ask(clusters, "relocate", WEST, dr_cluster=EAST)
    clusters.set_fault(WEST, "")
    with stage("  The application runs on east"):
        clusters.until(lambda: clusters.runs(EAST) and not clusters.runs(WEST), "the application runs on east only")
    expect(clusters, EAST, ["order 1", "order 2", "order 4", "order 5"], "nothing is lost")
    with stage("  west protects it again"):
        clusters.until(lambda: clusters.is_protected(EAST, "Relocated"), "west is the peer of east")
    show_drpc(clusters, EAST)


def ask(clusters: DrClusters, playbook: str, cluster: str, **variables: Any) -> None:
    """Run a playbook on a cluster, as a person does."""
    wanted = COMMON | variables
    given = [f"{name}={value}" if isinstance(value, str) else json.dumps({name: value}) for name, value in wanted.items()]
    options = " ".join(f"-e {shlex.quote(each)}" for each in given)
    heading(f"$ ansible-playbook openfleet.clusters.{playbook} {options}")
    clusters.mark(f"{playbook} is requested")
    with stage(f"{playbook} by one command on {cluster}") as shown:
        clusters.run_playbook(shown, playbook, cluster, wanted)


def show_drpc(clusters: DrClusters, cluster: str) -> None:
    arguments = ("get", "drpc", "-n", WORKLOAD.namespace, "-o", "wide")
    heading(f"$ kubectl {' '.join(arguments)}  # on {cluster}")
    print(clusters.site(cluster).kubectl(*arguments).stdout, flush=True)


def expect(clusters: DrClusters, cluster: str, texts: list[str], comment: str) -> None:
    """Show which writes a cluster has. Others than these are an error of the collection."""
    with stage(f"  Data on {cluster}") as shown:
        found = clusters.read(cluster)
        shown.note(f"{', '.join(found)}; {comment}")
        if found != texts:
            raise UserError(f"{cluster} has {found} instead of {texts}.")


def summary() -> None:
    print(f"""
What was built: the clusters {" and ".join(CLUSTERS)} (etcd, kube-apiserver and kube-controller-manager {gobuild.KUBERNETES_VERSION} each),
an S3 server for their coordination, and a rulebook for each. The workload {WORKLOAD} was protected, failed over from a dead
cluster, and relocated home. The API servers, the S3 server and all objects were real; the storage and Ramen's cluster operator were a
stand-in, and the data of the workload were lines in a ConfigMap.

Try next, on clusters that stay:
  . .venv/bin/activate
  openfleet-sandbox up --cluster {EAST} --cluster {WEST} --replication
  export KUBECONFIG=$(openfleet-sandbox kubeconfig {EAST})
  kubectl get crds
The walk-through explains each step: {PAGE}""")


if __name__ == "__main__":
    run_command(main)
