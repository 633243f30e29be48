"""The playbooks prepare_hub and drain_hub on a real API server: what they create, that a second run changes nothing, what is missing."""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_preparation import CREDENTIAL
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_reporter import HubReporter
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, HUB, hub_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden

from ..support.actions import answer
from ..support.fleet import Fleet, fleet_of

AGENT_OBJECTS = ("clusterrole", "clusterrolebinding", "validatingadmissionpolicy", "validatingadmissionpolicybinding")


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    """A fleet whose hub is the cluster itself. What a preparation leaves in the namespace of the site is deleted."""
    with fleet_of(hub, namespace) as made:
        yield made
        for kind in AGENT_OBJECTS:
            hub.kubectl("delete", kind, "openfleet-fleet-agent", "--ignore-not-found")
        kinds = "serviceaccount/openfleet-fleet-agent,role/openfleet-fleet-agent,rolebinding/openfleet-fleet-agent"
        hub.kubectl("delete", *kinds.split(","), f"secret/{CREDENTIAL}", "-n", "openfleet-system", "--ignore-not-found")


def play(playbook: str, folder: Path, *options: str, **variables: object) -> tuple[int, int, str]:
    """The exit code, how many tasks changed something, and the output."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))}
    settings = {"HOME": str(folder), "ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"), "ANSIBLE_NOCOLOR": "1"}
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"),
        f"openfleet.clusters.{playbook}",
        "-e",
        json.dumps(variables),
        *options,
    ]
    done = subprocess.run(command, cwd=folder, env=inherited | settings, capture_output=True, text=True, timeout=300, check=False)
    changed = re.search(r"changed=(\d+)", done.stdout)
    return done.returncode, int(changed[1]) if changed else -1, done.stdout + done.stderr


def test_hub_is_prepared_once_with_a_credential_that_reaches_its_namespace_and_drained(fleet: Fleet, tmp_path: Path) -> None:
    home, name = fleet.home, f"{fleet.namespace}-east"
    fleet.hubs.append(name)
    kubeconfig = str(fleet.access.kubeconfig)
    capacity = {"clusters": 10, "nodes": {"fc430": 40}}
    variables = {"fleet_hub": name, "home_kubeconfig": kubeconfig, "hub_kubeconfig": kubeconfig, "fleet_hub_capacity": capacity}
    _code, changed, output = play("prepare_hub", tmp_path, "--check", **variables)
    assert changed >= 3, output
    assert home.find(API_VERSION, HUB, name) is None
    assert home.find("v1", "Namespace", hub_namespace(name)) is None

    first, changed, output = play("prepare_hub", tmp_path, **variables)
    assert changed == 5, output
    again, changed, output = play("prepare_hub", tmp_path, **variables)
    assert (again, changed) == (first, 0), output
    assert ("takes no clusters yet" in output) == (first != 0), output
    credential = home.get("v1", "Secret", CREDENTIAL, "openfleet-system")["data"]["kubeconfig"]
    text = base64.b64decode(credential).decode()
    assert json.loads(text)["users"][0]["user"]["token"] not in output

    agent = Kube.connect({"kubeconfig": json.loads(text)})
    HubReporter(agent, name, "test").beat()
    for namespace in (fleet.namespace, "openfleet-system"):
        with pytest.raises(Forbidden):
            agent.list_all("v1", "Secret", namespace)

    code, changed, output = play("drain_hub", tmp_path, **variables)
    assert (code, changed) == (0, 1), output
    assert home.get(API_VERSION, HUB, name)["spec"]["schedulable"] is False
    reservation = {"uid": {"namespace": fleet.namespace, "name": "demo", "nodes": {}}}
    home.patch(home.get(API_VERSION, HUB, name), {"status": {"reservations": reservation}}, subresource="status")
    code, changed, output = play("drain_hub", tmp_path, **variables)
    assert (code, changed) == (0, 0), output
    assert f"{fleet.namespace}/demo" in output


def examples(module: str, **arguments: str) -> list[Object]:
    """The arguments of the module's tasks in its examples, with these instead of their own."""
    text = importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").EXAMPLES
    tasks = [task[f"openfleet.clusters.{module}"] for task in yaml.safe_load(text) if f"openfleet.clusters.{module}" in task]
    return [task | arguments for task in tasks]


def test_examples_of_access_and_preparation_change_once_and_check_mode_predicts(fleet: Fleet) -> None:
    name, kubeconfig = fleet.add_hub("east"), str(fleet.access.kubeconfig)
    account, credential = examples("hub_access", name=name, kubeconfig=kubeconfig)
    (preparation,) = examples("hub_preparation", kubeconfig=kubeconfig)
    for module, arguments, created in (("hub_access", account, "created"), ("hub_preparation", preparation, "applied")):
        predicted = answer(module, check=True, **arguments)
        done = answer(module, **arguments)
        assert predicted.changed and done.changed, done.result
        assert done.result[created] == predicted.result[created] != []
        again = answer(module, **arguments)
        assert not again.failed and not again.changed and again.result[created] == []
    issued = answer("hub_access", **credential).result
    assert issued["kubeconfig"]["clusters"][0]["cluster"]["server"] == credential["server"]
    assert "kubeconfig" not in answer("hub_access", check=True, **credential).result
