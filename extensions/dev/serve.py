"""`make serve`: a hub of this machine whose orders the rulebook reconciles, with its log on the screen, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import time

from ..sandbox.build import build
from ..sandbox.processes import port_in_use
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import UserError, heading, run_command
from .engine import Engine, running_engine
from .hub_page import ACCOUNT, NAMESPACE, running_page
from .rules_engine import STATE

POLL_SECONDS = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(prog="serve", description="Reconcile the orders on a hub of this machine until Ctrl-C.")
    parser.add_argument("--port", type=int, default=5000, help="port of the webhooks (default: 5000)")
    parser.add_argument(
        "provider", nargs="?", choices=("hypershift", "capi"), default="hypershift", help="what creates clusters on the hub"
    )
    arguments = parser.parse_args()
    port, capi = arguments.port, arguments.provider == "capi"
    if port_in_use(port):
        raise UserError(
            f"Port {port} is in use on 127.0.0.1: stop the program that uses it, or choose another with make serve WEBHOOK_PORT=..."
        )
    build(capi=capi)
    sandbox = Sandbox(STATE)
    with running_engine(sandbox, port, capi) as engine, running_page(sandbox) as page, contextlib.suppress(KeyboardInterrupt):
        introduce(sandbox, engine, page)
        while True:
            engine.check()
            for line in engine.new_lines():
                print(line, flush=True)
            time.sleep(POLL_SECONDS)
    return 0


def introduce(sandbox: Sandbox, engine: Engine, page: str) -> None:
    heading(f"""The page of this hub: {page}
In another shell:
  . .venv/bin/activate; export KUBECONFIG={sandbox.kubeconfig()}
  kubectl create token {ACCOUNT} -n {NAMESPACE}    # the token to log in to the page with
  kubectl apply -f docs/examples/cluster_order.yaml; kubectl get clusterorders -A -w
Webhooks need the token in a file that only you can read:
  curl -H "Authorization: Bearer $(cat {engine.token_file})" {engine.url}/create-hosted-cluster \\
    -d '{{"metadata": {{"namespace": "orders", "name": "demo"}}}}'
Ctrl-C ends it. The log of the rulebook:
""")


if __name__ == "__main__":
    run_command(main)
