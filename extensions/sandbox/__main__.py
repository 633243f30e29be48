"""The command line of the sandbox: `openfleet-sandbox up | down | status | kubeconfig | logs | build | flux-manifest`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .build import build as build_all
from .gitops.flux_manifest import write_beside_controllers
from .sandbox import Sandbox
from .screen import UserError, run_command, stage
from .supervisor import HUB


def main() -> int:
    arguments = _parser().parse_args()
    sandbox = Sandbox(arguments.state)
    commands = {
        "up": up,
        "down": down,
        "status": status,
        "kubeconfig": kubeconfig,
        "logs": logs,
        "build": build,
        "flux-manifest": flux_manifest,
    }
    return commands[arguments.command](sandbox, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="openfleet-sandbox", description="A whole hub on one machine: real Kubernetes, stand-in HyperShift."
    )
    parser.add_argument(
        "--state", type=Path, default=Path(os.environ.get("OPENFLEET_SANDBOX", ".sandbox")), help="its folder (default: .sandbox)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("up", help="start it, or start what is missing or has crashed")
    command.add_argument("--cluster", action="append", default=[], metavar="NAME", help="a further cluster (repeatable)")
    command.add_argument("--s3", action="store_true", help="S3 as well")
    command.add_argument("--capi", action="store_true", help="Cluster API as well")
    command.add_argument("--replication", action="store_true", help="stand-in replication between the further clusters, and S3, as well")
    command.add_argument("--gitops", action="store_true", help="a git server, a chart repository and an OCI registry as well")
    command.add_argument("--gitea", action="store_true", help="Gitea, a forge with pull requests, as well")
    command.add_argument(
        "--workloads", action="append", default=[], metavar="NAME", help="run the Deployments of this cluster (repeatable)"
    )
    command.add_argument("--port", type=int, default=0, help="the hub's port (default: a free one)")
    command.add_argument("--status-only", action="store_true", help="HostedClusters get status but no processes, for load")
    command.add_argument("--hypershift-crds", type=Path, metavar="FOLDER", help="HyperShift's CRDs of another version, one in each *.yaml")
    command = commands.add_parser("down", help="stop it and remove its files")
    command.add_argument("--cluster", action="append", default=[], metavar="NAME", help="only this further cluster (repeatable)")
    commands.add_parser("status", help="show every process; fails if one has crashed, with the end of its log")
    command = commands.add_parser("kubeconfig", help="print the path of a kubeconfig")
    command.add_argument("cluster", nargs="?", default=HUB)
    command = commands.add_parser("logs", help="list the logs, or print one")
    command.add_argument("name", nargs="?", help="as listed, for example hub/kube-apiserver")
    command = commands.add_parser("build", help="download or compile now what `up` would otherwise download or compile")
    command.add_argument("--s3", action="store_true", help="S3 as well")
    command.add_argument("--capi", action="store_true", help="Cluster API as well")
    command.add_argument("--flux", action="store_true", help="Flux's controllers and what --gitops starts as well")
    command.add_argument("--gitea", action="store_true", help="Gitea as well")
    command.add_argument("--apis", action="store_true", help="other projects' API definitions for tests as well")
    commands.add_parser("flux-manifest", help="print the path of Flux's install manifest; beside it is its checksum, in *.sha256")
    return parser


def up(sandbox: Sandbox, arguments: argparse.Namespace) -> int:
    running = sandbox.holder() is not None
    build_all(
        arguments.s3 or arguments.replication,
        arguments.capi,
        hypershift=arguments.hypershift_crds is None,
        flux=bool(arguments.workloads),
        gitops=arguments.gitops,
        gitea=arguments.gitea,
    )
    with stage("Sandbox is running already" if running else "Sandbox hub"):
        sandbox.up(
            arguments.cluster,
            arguments.s3,
            arguments.capi,
            arguments.replication,
            arguments.port,
            arguments.status_only,
            arguments.hypershift_crds,
            gitops=arguments.gitops,
            gitea=arguments.gitea,
            workloads=arguments.workloads,
        )
    for name in (HUB, *arguments.cluster):
        print(f"  export KUBECONFIG={sandbox.kubeconfig(name)}  # {name}")
    return 0


def down(sandbox: Sandbox, arguments: argparse.Namespace) -> int:
    with stage("Sandbox down"):
        sandbox.down(arguments.cluster)
    return 0


def status(sandbox: Sandbox, _arguments: argparse.Namespace) -> int:
    for process in sandbox.status():
        state = f"pid {process.pid}" if process.running else "ENDED"
        print(f"{process.owner:<28} {process.name:<28} {state:<12} {process.address}")
    sandbox.check()
    return 0


def kubeconfig(sandbox: Sandbox, arguments: argparse.Namespace) -> int:
    print(sandbox.kubeconfig(arguments.cluster))
    return 0


def logs(sandbox: Sandbox, arguments: argparse.Namespace) -> int:
    known = sandbox.logs()
    if arguments.name is None:
        for name, path in known.items():
            print(f"{name:<44} {path}")
    elif arguments.name in known:
        print(known[arguments.name].read_text(errors="replace"), end="")
    else:
        raise UserError(f"No log is named {arguments.name}: there are {', '.join(known) or 'none, as no sandbox is running'}.")
    return 0


def build(_sandbox: Sandbox, arguments: argparse.Namespace) -> int:
    build_all(arguments.s3, arguments.capi, arguments.apis, flux=arguments.flux, gitea=arguments.gitea)
    return 0


def flux_manifest(_sandbox: Sandbox, _arguments: argparse.Namespace) -> int:
    print(write_beside_controllers().path)
    return 0


if __name__ == "__main__":
    run_command(main)
