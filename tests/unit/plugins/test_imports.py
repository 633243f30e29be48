"""What Ansible imports to run the tasks of an order: no library that only other sites or tasks need."""

from __future__ import annotations

import subprocess
import sys

import pytest

ACTIONS = ("cluster_order_prepare", "cluster", "cluster_order_finish", "cluster_order_status")
NOT_NEEDED = ("boto3", "botocore", "dns", "kubernetes", "openshift_client", "aiohttp", "prometheus_client", "requests")
PROGRAM = """
import importlib, sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([])
importlib.import_module("ansible_collections.openfleet.clusters.plugins.action." + sys.argv[1])
print(" ".join(name for name in sys.argv[2:] if name in sys.modules))
"""


@pytest.mark.parametrize("action", ACTIONS)
def test_a_task_of_every_run_imports_no_library_that_few_sites_need(action: str) -> None:
    command = [sys.executable, "-c", PROGRAM, action, *NOT_NEEDED]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
