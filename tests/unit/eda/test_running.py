"""The files by which a site runs the rules engine, against each other and what they name: permissions, times, versions, arguments."""

from __future__ import annotations

import importlib.util
import ipaddress
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.in_flight import InFlightRuns, PendingAction
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key

ROOT = Path(__file__).resolve().parents[3]
SERVE = ROOT / "extensions/eda/serve.py"
MANIFESTS = ROOT / "extensions/eda/deploy/kubernetes"
UNIT = ROOT / "extensions/eda/deploy/systemd/openfleet-clusters.service"
ENVIRONMENTS = [
    ROOT / "extensions/eda/decision_environment/decision-environment.yml",
    ROOT / "extensions/execution_environment/execution-environment.yml",
]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def setting(name: str) -> str:
    """A setting of the unit, on one line."""
    text = UNIT.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)[0]


def pod() -> Any:
    return read(MANIFESTS / "deployment.yaml")["spec"]["template"]["spec"]


def grace_seconds() -> int:
    spec = importlib.util.spec_from_file_location("serve", SERVE)
    assert spec
    assert spec.loader
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    return int(serve.GRACE_SECONDS)


def test_page_lists_the_permissions_of_the_account_and_no_others() -> None:
    page = (ROOT / "docs/running.md").read_text(encoding="utf-8")
    section = page.partition("## Permissions")[2].partition("Other providers")[0]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:3]] for line in section.splitlines() if line.startswith("| `")]
    listed = [(resource, verb) for resources, verbs in rows for resource in resources if resource != "admin" for verb in verbs]
    rules = [rule for name in ("cluster_role", "role") for rule in read(MANIFESTS / f"{name}.yaml")["rules"]]
    granted = [(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]]
    assert sorted(listed) == sorted(granted)


@pytest.mark.parametrize("folder", sorted(str(file.parent.relative_to(MANIFESTS)) for file in MANIFESTS.rglob("kustomization.yaml")))
def test_kustomization_names_every_manifest(folder: str) -> None:
    there = {file.name for file in (MANIFESTS / folder).glob("*.yaml")} - {"kustomization.yaml"}
    assert set(read(MANIFESTS / folder / "kustomization.yaml")["resources"]) == there


def test_one_namespace_never_has_all_the_runs_of_the_shipped_deployment() -> None:
    settings = yaml.safe_load(read(MANIFESTS / "config_map.yaml")["data"]["variables.yml"])["event_source"]
    runs = InFlightRuns(1, settings["max_in_flight"], 1, 1)
    for name in "abcdefgh":
        runs.request(Key("greedy", name), PendingAction("provision", "SpecNotApplied", "uid", 1, 0))
    while runs.start(0):
        pass
    runs.request(Key("other", "a"), PendingAction("provision", "SpecNotApplied", "uid", 1, 0))
    assert runs.start(0)


def test_page_lists_every_manifest() -> None:
    section = (ROOT / "docs/running.md").read_text(encoding="utf-8").partition("## What is shipped")[2].partition("\n## ")[0]
    files = {str(file.relative_to(MANIFESTS)) for file in MANIFESTS.rglob("*.*") if file.name != "kustomization.yaml"}
    assert {name for name in files if f"`{name}`" not in section} == set()


def test_guide_shows_the_role_that_is_shipped_for_operators() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/site_settings.md").read_text(encoding="utf-8"), re.DOTALL)
    assert read(MANIFESTS / "operator_cluster_role.yaml") in [yaml.safe_load(block) for block in blocks if "kind: ClusterRole" in block]


def test_page_lists_every_alert() -> None:
    section = (ROOT / "docs/running.md").read_text(encoding="utf-8").partition("## Monitoring")[2].partition("\n## ")[0]
    rules = read(MANIFESTS / "monitoring/prometheus_rule.yaml")["spec"]["groups"][0]["rules"]
    assert re.findall(r"`(Openfleet\w+)`", section) == [rule["alert"] for rule in rules]


def test_policies_and_roles_are_about_one_api_group() -> None:
    """A site that has another group changes it in every place: no place is missed."""
    texts = {str(file.relative_to(MANIFESTS)): file.read_text(encoding="utf-8") for file in MANIFESTS.rglob("*.yaml")}
    with_group = {name: text for name, text in texts.items() if "cloudkit.openshift.io" in text}
    assert {"cluster_role.yaml", "tenant_cluster_role.yaml", "policy_orders.yaml", "policy_namespaces.yaml"} <= with_group.keys()
    for name, text in with_group.items():
        for line in text.splitlines():
            assert "cloudkit.openshift.io" not in line or "Site:" in line, f"{name}: {line}"


@pytest.mark.parametrize("folder", sorted(str(file.parent.relative_to(MANIFESTS)) for file in MANIFESTS.rglob("network_policy.yaml")))
def test_network_policy_and_disruption_budget_are_about_the_pods_of_their_deployment(folder: str) -> None:
    deployment, policy, budget = (
        read(MANIFESTS / folder / f"{name}.yaml")["spec"] for name in ("deployment", "network_policy", "pod_disruption_budget")
    )
    selector = {"matchLabels": deployment["template"]["metadata"]["labels"]}
    assert deployment["selector"] == policy["podSelector"] == budget["selector"] == selector
    assert 1 <= budget["minAvailable"] < deployment["replicas"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    senders = {port["port"]: rule["from"] for rule in policy["ingress"] for port in rule["ports"]}
    assert senders.keys() == {port["name"] for port in deployment["template"]["spec"]["containers"][0]["ports"]}
    (prometheus,) = senders["health"]
    assert prometheus["namespaceSelector"]["matchLabels"], "other Pods do not reach the health port"
    anywhere = [{port["port"] for port in rule["ports"]} for rule in policy["egress"] if "to" not in rule]
    assert anywhere == [{53, 5353}], "only DNS has no limit of addresses"
    blocks = [each["ipBlock"] for rule in policy["egress"] for each in rule.get("to", [])]
    reached = [ipaddress.ip_network(block["cidr"]) for block in blocks]
    for address in ("169.254.169.254", "fe80::1", "fd00:ec2::254"):  # the last is the metadata service of a cloud
        found = ipaddress.ip_address(address)
        within = [block for block, network in zip(blocks, reached, strict=True) if found in network]
        assert within and all(any(found in ipaddress.ip_network(each) for each in block["except"]) for block in within), address


@pytest.mark.parametrize("folder", [file.parent for file in sorted(MANIFESTS.rglob("deployment.yaml"))], ids=lambda path: str(path.name))
def test_image_of_each_deployment_is_that_of_its_kustomization(folder: Path) -> None:
    """Otherwise its image has no registry."""
    (container,) = read(folder / "deployment.yaml")["spec"]["template"]["spec"]["containers"]
    assert [image["name"] for image in read(folder / "kustomization.yaml").get("images", [])] == [container["image"]]


def test_deployment_serves_webhooks_with_tls_and_probes_at_a_port_of_their_own() -> None:
    webhook = yaml.safe_load(read(MANIFESTS / "config_map.yaml")["data"]["variables.yml"])["event_source"]["webhook"]
    container, service = pod()["containers"][0], read(MANIFESTS / "service.yaml")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"webhooks": webhook["port"], "health": webhook["health_port"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")} == {"health"}
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod()["volumes"] if "secret" in volume}
    folders = {secrets[mount["name"]]: mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in secrets}
    created = service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
    assert folders == {created: "/etc/openfleet-tls"}
    assert (webhook["certfile"], webhook["keyfile"]) == ("/etc/openfleet-tls/tls.crt", "/etc/openfleet-tls/tls.key")
    assert created in (ROOT / "docs/running.md").read_text(encoding="utf-8")


def test_service_managers_wait_for_longer_than_the_supervisor_takes_to_end() -> None:
    assert pod()["terminationGracePeriodSeconds"] > grace_seconds()
    assert int(setting("TimeoutStopSec")) > grace_seconds()


def test_unit_and_deployment_start_the_same() -> None:
    container = pod()["containers"][0]
    python, serve, *arguments = shlex.split(setting("ExecStart"))
    assert python.endswith("/bin/python")
    assert container["command"][0] == "python3"
    for path in (serve, container["command"][1]):
        assert path.endswith(f"/ansible_collections/openfleet/clusters/{SERVE.relative_to(ROOT)}")
    assert arguments == container["args"]


# Only systemd itself can check a unit, and a machine such as a container may lack it; the table at the end of a run
# names this test then.
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze: install systemd")
def test_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/openfleet/bin/python", shutil.which("true") or ""), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.parametrize("file", ENVIRONMENTS, ids=lambda file: file.stem)
def test_environment_has_the_collection_and_the_versions_of_this_checkout(file: Path) -> None:
    definition = read(file)
    galaxy = read(ROOT / "galaxy.yml")
    tarball = f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"
    dependencies = definition["dependencies"]
    assert definition["version"] == 3
    assert [(entry["src"], entry["dest"]) for entry in definition["additional_build_files"]] == [(tarball, "collections")]
    assert read(file.parent / dependencies["galaxy"])["collections"] == [{"name": f"collections/{tarball}", "type": "file"}]
    wanted = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    packages = [dependencies["ansible_core"]["package_pip"]]
    if "python" in dependencies:
        packages += (file.parent / dependencies["python"]).read_text(encoding="utf-8").split()
    assert set(packages) <= set(wanted)
    if "system" in dependencies:
        assert "java-17" in (file.parent / dependencies["system"]).read_text(encoding="utf-8")


def test_collection_names_files_for_an_environment_that_exist() -> None:
    dependencies = read(ROOT / "meta/execution-environment.yml")["dependencies"]
    assert all((ROOT / name).is_file() for name in dependencies.values())
