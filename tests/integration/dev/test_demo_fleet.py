"""`make demo-fleet` as a newcomer runs it: two tenants, two hubs, one API, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import working_in

DEMO = [sys.executable, "-m", "ansible_collections.openfleet.clusters.extensions.dev.demo_fleet"]
DEMO_SECONDS = 1800  # it takes some minutes


def test_the_demo_spreads_refuses_drains_and_explains_a_lost_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENFLEET_SANDBOX", str(tmp_path / "state"))
    result = subprocess.run(DEMO, capture_output=True, text=True, check=False, timeout=DEMO_SECONDS)
    assert result.returncode == 0, result.stdout + result.stderr
    stages = [
        "Clusters: home, and the hubs east and west",
        "Hub west joins the fleet by prepare_hub",
        "openfleet.clusters.fleet at home",
        "fleet_agent and cluster_fulfillment on the hubs",
        "The page of the fleet, while the demo runs: http://127.0.0.1:",
        "the token of alice: awk ",
        "$ curl -H @operator -X PUT $FLEET/admin/quotas/globex",
        "$ curl -H @alice -X POST $FLEET/clusters",
        "lab-2: Ready on ",
        "lab-3: The quota is exceeded: clusters needs 1, 0 of 2 free",
        "a kubeconfig that expires at ",
        "shop-fc430-0   Ready ",
        "HTTP 404",
        "$ curl -H @operator -X POST $FLEET/admin/hubs/east/drain",
        "next: west has the best score",
        "west killed with -9",
        "west: The agent of the hub has not reported since ",
        "late: 0 of 2 hubs fit: 1 not reporting since ",
        "$ curl -H @alice -X DELETE $FLEET/clusters/",
        "by system:serviceaccount:acme:alice: Deleted, fc430 ",
        "TENANT   CLUSTER ",
        "HUB    READY ",
        "TENANT   USED ",
        "API and rulebooks ended",
        "Clusters ended",
        "What was built: a home cluster and the hubs east and west",
        "Try next",
    ]
    positions = [result.stdout.index(line) for line in stages]
    assert positions == sorted(positions)
    assert "Bearer" not in result.stdout
    assert result.stdout.endswith("The walk-through explains each step: docs/fleet_walkthrough.md\n")
    assert not list(tmp_path.iterdir()) and not working_in(tmp_path)
