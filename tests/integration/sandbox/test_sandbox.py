"""The sandbox with real processes: started, found running, crashed, and stopped with nothing left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox, StoreAccess
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube

from ..support.permissions import allowed

PACKAGE = "ansible_collections.openfleet.clusters.extensions.sandbox"


class Commands:
    """The command line, used on a state folder of its own."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.sandbox = Sandbox(state)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", PACKAGE, "--state", str(self.state), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path / "state")
    yield commands
    commands.run("down")


def working_in(folder: Path) -> list[int]:
    """The processes of a sandbox, found by their working directory or command line, whatever files may say."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            inside = (entry / "cwd").readlink().is_relative_to(folder)
        except OSError:
            continue
        if inside or (f"{PACKAGE}.supervisor" in command and str(folder) in command):
            found.append(int(entry.name))
    return found


def listening() -> dict[int, set[str]]:
    """Every listening TCP port of this machine, with its local addresses as the kernel writes them."""
    ports: dict[int, set[str]] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A":
                address, port = local.split(":")
                ports.setdefault(int(port, 16), set()).add(address)
    return ports


def ports_of(sandbox: Sandbox) -> set[int]:
    return {int(process.address.rpartition(":")[2]) for process in sandbox.status() if process.address}


def assert_nothing_is_left(commands: Commands, ports: set[int]) -> None:
    until(lambda: not working_in(commands.state), "its processes have ended")
    until(lambda: not ports & listening().keys(), "its ports are free")


def test_up_gives_a_hub_and_down_leaves_nothing(commands: Commands) -> None:
    result = commands.run("up")
    assert result.returncode == 0, result.stderr
    hub = Access(Path(commands.run("kubeconfig").stdout.strip()))
    assert "Server Version: v1.36." in hub.kubectl("version").stdout
    assert {"hostedclusters", "nodepools", "clusterorders"} <= set(hub.kubectl("api-resources", "--no-headers").stdout.split())
    ports = ports_of(commands.sandbox)
    assert ports and all(listening()[port] == {"0100007F"} for port in ports)
    assert commands.run("status").returncode == 0

    assert commands.run("down").returncode == 0
    assert_nothing_is_left(commands, ports)
    assert not commands.state.exists()
    assert commands.run("down").returncode == 0


def test_only_the_owner_can_read_keys_and_kubeconfigs(sandbox: Sandbox) -> None:
    modes = set()
    for path in [file for name in ("kubeconfig", "*.key", "*.kubeconfig") for file in sandbox.state.rglob(name)]:
        with contextlib.suppress(FileNotFoundError):  # of a cluster of an earlier test, which is being deleted
            modes.add(stat.S_IMODE(path.stat().st_mode))
    assert modes == {0o600}
    assert stat.S_IMODE(sandbox.state.stat().st_mode) == 0o700


def test_access_needs_credentials_and_roles(hub: Access, namespace: str) -> None:
    """RBAC is on: the API server refuses a client without credentials, and a role grants a service account its permissions."""
    server = json.loads(hub.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    anonymous = hub.kubectl("get", "secrets", "--kubeconfig=/dev/null", f"--server={server}", "--insecure-skip-tls-verify", check=False)
    assert anonymous.returncode != 0
    until(lambda: hub.get("serviceaccount", "default", "-n", namespace), "Kubernetes has created the account")
    token = hub.kubectl("create", "token", "default", "-n", namespace).stdout.strip()
    account = Kube.connect({"host": server, "api_key": token, "validate_certs": False})
    assert not allowed(account, "create", "configmaps", namespace=namespace)
    hub.kubectl("create", "rolebinding", "edit", "-n", namespace, "--clusterrole=edit", f"--serviceaccount={namespace}:default")
    until(lambda: allowed(account, "create", "configmaps", namespace=namespace), "the role grants it")


def test_up_twice_is_one_sandbox(commands: Commands) -> None:
    assert commands.run("up").returncode == 0
    first = commands.sandbox.status()
    again = commands.run("up")
    assert again.returncode == 0 and "running already" in again.stdout
    assert commands.sandbox.status() == first


def test_two_ups_at_once_are_one_sandbox(commands: Commands) -> None:
    both = [commands.start("up"), commands.start("up")]
    for process in both:
        _stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
    assert len([process for process in commands.sandbox.status() if process.name == "kube-apiserver"]) == 1
    assert len([pid for pid in working_in(commands.state) if b"kube-apiserver" in command_line(Path(f"/proc/{pid}"))]) == 1


def test_a_killed_supervisor_takes_everything_with_it_and_up_starts_again(commands: Commands) -> None:
    assert commands.run("up").returncode == 0
    ports = ports_of(commands.sandbox)
    holder = commands.sandbox.holder()
    assert holder
    os.kill(holder, signal.SIGKILL)
    assert_nothing_is_left(commands, ports)
    assert "not running" in commands.run("status").stderr
    assert commands.run("up").returncode == 0
    Access(commands.sandbox.kubeconfig()).kubectl("get", "namespaces")


def test_a_killed_parent_takes_an_attached_sandbox_with_it(commands: Commands) -> None:
    program = (
        f"import pathlib, sys, time; from {PACKAGE}.sandbox import Sandbox; Sandbox(pathlib.Path(sys.argv[1])).up(attached=True);"
        " print('up', flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(commands.state)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout and parent.stdout.readline() == "up\n"
    ports = ports_of(commands.sandbox)
    assert ports
    parent.kill()
    parent.wait()
    assert_nothing_is_left(commands, ports)


def test_ctrl_c_while_starting_leaves_nothing(commands: Commands) -> None:
    process = commands.start("up")
    until(lambda: any(commands.state.rglob("kube-apiserver.log")), "the API server is starting")
    os.killpg(process.pid, signal.SIGINT)
    _stdout, stderr = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert_nothing_is_left(commands, set())
    assert not commands.state.exists()


def test_a_port_in_use_is_one_sentence_and_leaves_nothing(commands: Commands) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = commands.run("up", "--port", str(port))
    assert result.returncode == 1
    assert result.stderr.strip().splitlines() == [
        f"✘ Port {port} is in use on 127.0.0.1: stop the program that uses it, or choose another with --port."
    ]
    assert_nothing_is_left(commands, set())
    assert not commands.state.exists()


def test_the_chosen_port_is_the_hubs(commands: Commands) -> None:
    port = free_port()
    assert commands.run("up", "--port", str(port)).returncode == 0
    assert ports_of(commands.sandbox) == {port}


@pytest.mark.parametrize("garbage", ["", "{", "[1, 2]", "\x00\xff"])
def test_a_corrupt_state_folder_is_created_again(commands: Commands, garbage: str) -> None:
    (commands.state / "clusters" / "hub").mkdir(parents=True)
    for name in ("sandbox.lock", "desired.json", "sandbox.json", "clusters/hub/cluster.json", "clusters/hub/kubeconfig"):
        (commands.state / name).write_text(garbage)
    result = commands.run("up")
    assert result.returncode == 0, result.stderr
    Access(commands.sandbox.kubeconfig()).kubectl("get", "namespaces")


def test_files_spoilt_under_a_running_sandbox_do_not_keep_it_from_ending(commands: Commands) -> None:
    assert commands.run("up").returncode == 0
    ports = ports_of(commands.sandbox)
    for name in ("desired.json", "sandbox.json", "clusters/hub/cluster.json"):
        (commands.state / name).write_text("{")
    assert commands.run("down").returncode == 0
    assert_nothing_is_left(commands, ports)


def test_a_folder_with_other_files_is_refused_and_not_touched(commands: Commands) -> None:
    commands.state.mkdir()
    (commands.state / "thesis.txt").write_text("mine")
    for command in ("up", "down"):
        result = commands.run(command)
        assert result.returncode == 1 and "not a sandbox's" in result.stderr and "--state" in result.stderr
    assert [path.name for path in commands.state.iterdir()] == ["thesis.txt"]
    (commands.state / "thesis.txt").unlink()


def test_a_crashed_process_is_named_with_its_log_and_up_restarts_it(commands: Commands) -> None:
    assert commands.run("up").returncode == 0
    hub = Access(commands.sandbox.kubeconfig())
    hub.kubectl("create", "namespace", "kept")
    victim = next(process for process in commands.sandbox.status() if process.name == "kube-apiserver")
    os.kill(victim.pid, signal.SIGKILL)
    until(lambda: commands.run("status").returncode == 1, "the crash is noticed")
    said = commands.run("status").stderr
    assert "kube-apiserver of hub has ended" in said and str(victim.log) in said
    assert victim.log.read_text().splitlines()[-1][:100] in said
    exit_report = "kube-apiserver was killed by SIGKILL"
    until(lambda: exit_report in commands.run("logs", "sandbox/supervisor").stdout, "the supervisor has logged it")

    assert commands.run("up").returncode == 0
    assert commands.run("status").returncode == 0
    hub.kubectl("get", "namespace", "kept")


def test_a_process_that_cannot_start_is_named_and_nothing_is_left(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"):
        (assets / name).write_text("#!/bin/sh\necho I am broken >&2\nexit 3\n")
        (assets / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    result = commands.run("up")
    assert result.returncode == 1
    assert re.search(r"(etcd|kube-apiserver) ended with exit code 3", result.stderr) and "I am broken" in result.stderr
    assert "Traceback" not in result.stderr
    assert not working_in(commands.state)
    assert not commands.state.exists()
    assert "broken" not in (Path(sys.prefix) / "bin" / "kubectl").read_text(errors="replace")[:100], "it is not offered to others"


def test_further_clusters_are_started_and_stopped_beside_the_hub(commands: Commands) -> None:
    assert commands.run("up", "--cluster", "east").returncode == 0
    hub_before = [process for process in commands.sandbox.status() if process.owner == "hub"]
    assert commands.run("up", "--cluster", "west").returncode == 0
    east, west = (Access(commands.sandbox.kubeconfig(name)) for name in ("east", "west"))
    east.kubectl("create", "namespace", "only-east")
    assert west.get("namespace", "only-east") is None
    ports = ports_of(commands.sandbox)
    assert commands.run("down", "--cluster", "east").returncode == 0
    assert len(ports - listening().keys()) == 1
    west.kubectl("get", "namespaces")
    assert [process for process in commands.sandbox.status() if process.owner == "hub"] == hub_before
    unknown = commands.run("down", "--cluster", "north")
    assert unknown.returncode == 1 and "north" in unknown.stderr


def test_s3_keeps_objects_and_honours_conditions(s3: StoreAccess) -> None:
    store = boto3.client(
        "s3", endpoint_url=s3.endpoint, region_name=s3.region, aws_access_key_id=s3.access_key, aws_secret_access_key=s3.secret_key
    )
    store.create_bucket(Bucket="test")
    store.put_object(Bucket="test", Key="lock", Body=b"first", IfNoneMatch="*")
    with pytest.raises(store.exceptions.ClientError, match="PreconditionFailed"):
        store.put_object(Bucket="test", Key="lock", Body=b"second", IfNoneMatch="*")
    assert store.get_object(Bucket="test", Key="lock")["Body"].read() == b"first"


def test_the_secret_of_s3_is_not_on_a_command_line(s3: StoreAccess) -> None:
    lines = [command_line(entry) for entry in Path("/proc").glob("[0-9]*")]
    assert any(b"versitygw" in line for line in lines)
    assert not any(s3.secret_key.encode() in line for line in lines)


def command_line(process: Path) -> bytes:
    with contextlib.suppress(OSError):  # it may end just now
        return (process / "cmdline").read_bytes()
    return b""


def test_what_is_not_running_is_said_in_one_sentence(tmp_path: Path) -> None:
    absent = Sandbox(tmp_path / "absent")
    for ask in (absent.check, absent.kubeconfig, absent.s3):
        with pytest.raises(UserError, match=r"openfleet-sandbox up"):
            ask()


@pytest.mark.parametrize("name", ["../victim", "", "hub", "Upper", "a/b", "x" * 41])
def test_a_name_that_is_no_cluster_name_is_refused(commands: Commands, name: str) -> None:
    result = commands.run("up", "--cluster", name)
    assert result.returncode == 1 and "cannot be named" in result.stderr
    assert not commands.state.exists()


def test_settings_of_the_start_cannot_change_under_a_running_sandbox(sandbox: Sandbox) -> None:
    for change in ({"status_only": True}, {"port": 1}, {"hypershift_crds": Path("elsewhere")}):
        with pytest.raises(UserError, match="end it first"):
            sandbox.up(**change)  # type: ignore[arg-type]
