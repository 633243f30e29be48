"""One real Kubernetes control plane as plain processes on loopback: etcd, API server, controller manager.

etcd listens on sockets in the cluster's private folder, not on ports, so no other user of the machine reaches it. They are
named relative to the working directory, because a socket's path may not be longer than 108 characters.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import shutil
import signal
import ssl
from pathlib import Path
from typing import Any

from .certificates import Authority, new_key, private_pem, public_pem
from .processes import Process, ProcessDied, free_port, port_in_use, read_json, run, write_json, write_private
from .screen import UserError

HOSTS = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1"]
# The controllers that need no nodes. Without the node lifecycle controller, Nodes without heartbeats stay Ready.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)
READY_SECONDS = 180
PORT_TRIES = 3


class Cluster:
    """A control plane in `folder`; the folder keeps its data, port and certificates, so a stopped cluster can start again."""

    def __init__(self, name: str, folder: Path, binaries: dict[str, Path], port: int = 0) -> None:
        self.name = name
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.port = port
        self._wanted_port = port
        self._binaries = binaries
        self._processes: list[Process] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return bool(self._processes) and all(process.running for process in self._processes)

    async def start(self) -> None:
        """Start what isn't running and return when the API server is ready. Raises ProcessDied with the reason otherwise."""
        await self.stop()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._wanted_port and port_in_use(self._wanted_port):
            raise UserError(
                f"Port {self._wanted_port} is in use on 127.0.0.1: stop the program that uses it, or choose another with --port."
            )
        try:
            await self._start_on_a_port()
        except BaseException:
            await self.stop()
            raise
        self._describe()

    async def stop(self) -> None:
        """End all processes at once: every write that was answered is in etcd, and no client waits for the rest."""
        await asyncio.gather(*(process.stop(signal.SIGKILL) for process in reversed(self._processes)))
        self._processes = []

    async def remove(self) -> None:
        await self.stop()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def kubectl(self, *arguments: str) -> None:
        """Run kubectl on this cluster, in its folder."""
        await run([self._binaries["kubectl"], "--kubeconfig=kubeconfig", *arguments], self.folder)

    async def apply(self, file: str, objects: list[dict[str, Any]], force: bool = False) -> None:
        """Apply the objects; `file` in the cluster's folder holds them. `force` takes fields from others who have changed them."""
        write_json(self.folder / file, {"apiVersion": "v1", "kind": "List", "items": objects})
        await self.kubectl("apply", "--server-side", *(["--force-conflicts"] if force else []), "-f", file)

    async def install_crds(self, file: str, definitions: list[dict[str, Any]]) -> None:
        """Apply the CRDs and return when their kinds are served."""
        await self.apply(file, definitions)
        await self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", file)
        # Until their schemas are published, kubectl validates objects by itself, with other rules than the server's.
        for definition in definitions:
            served = next(version["name"] for version in definition["spec"]["versions"] if version["served"])
            await self.until_answered(f"/openapi/v3/apis/{definition['spec']['group']}/{served}")

    async def _start_on_a_port(self) -> None:
        """Another process may bind the free port before the API server does: then try the next one."""
        for attempt in range(1, PORT_TRIES + 1):
            last = read_json(self.folder / "cluster.json").get("port", 0)
            self.port = self._wanted_port or (last if last and not port_in_use(last) else free_port())
            try:
                await self._start_processes()
                return
            except ProcessDied as death:
                if self._wanted_port or attempt == PORT_TRIES or "address already in use" not in str(death):
                    raise
                await self.stop()
                (self.folder / "cluster.json").unlink(missing_ok=True)

    async def _start_processes(self) -> None:
        if read_json(self.folder / "cluster.json").get("port") != self.port:
            self._write_credentials()
        etcd = Process("etcd", self._etcd(), self.folder)
        api_server = Process("kube-apiserver", self._api_server(), self.folder)
        manager = Process("kube-controller-manager", self._controller_manager(), self.folder)
        self._processes = [etcd, api_server]
        await asyncio.gather(etcd.start(), api_server.start())
        await self.until_answered("/readyz")
        self._processes.append(manager)
        await manager.start()
        await self.until_answered("/api/v1/namespaces/default/serviceaccounts/default")

    async def until_answered(self, path: str) -> None:
        """Wait until the API server answers a GET of `path` with OK; raises ProcessDied if a process ends before."""
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while not await asyncio.to_thread(self._answers, path):
            for process in self._processes:
                process.check()
            if asyncio.get_running_loop().time() > deadline:
                raise ProcessDied(
                    f"The API server of cluster {self.name} is not ready after {READY_SECONDS} s. {self._processes[-1].exit_report()}"
                )
            await asyncio.sleep(0.1)

    def _answers(self, path: str) -> bool:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _describe(self) -> None:
        description: dict[str, Any] = {
            "name": self.name,
            "port": self.port,
            "url": self.url,
            "kubeconfig": str(self.kubeconfig),
            "processes": [process.describe() for process in self._processes],
        }
        write_json(self.folder / "cluster.json", description)

    def _write_credentials(self) -> None:
        authority = Authority(f"sandbox-{self.name}")
        service_accounts = new_key()
        files = {"ca.crt": authority.pem, "sa.key": private_pem(service_accounts), "sa.pub": public_pem(service_accounts)}
        files["server.crt"], files["server.key"] = authority.server("kube-apiserver", HOSTS)
        files["admin.crt"], files["admin.key"] = authority.client("sandbox-admin", "system:masters")
        files["manager.crt"], files["manager.key"] = authority.client("system:kube-controller-manager")
        for name, content in files.items():
            write_private(self.folder / name, content)
        write_private(self.kubeconfig, self._kubeconfig(files, "admin"))
        write_private(self.folder / "manager.kubeconfig", self._kubeconfig(files, "manager"))

    def _kubeconfig(self, files: dict[str, bytes], user: str) -> str:
        def encoded(name: str) -> str:
            return base64.b64encode(files[name]).decode()

        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": {"server": self.url, "certificate-authority-data": encoded("ca.crt")}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": user}}],
            "users": [
                {"name": user, "user": {"client-certificate-data": encoded(f"{user}.crt"), "client-key-data": encoded(f"{user}.key")}}
            ],
        }
        return json.dumps(content, indent=2)

    def _etcd(self) -> list[str | Path]:
        return [
            self._binaries["etcd"],
            "--name=sandbox",
            "--data-dir=etcd",
            "--listen-peer-urls=unix://peer:0",
            "--initial-advertise-peer-urls=unix://peer:0",
            "--initial-cluster=sandbox=unix://peer:0",
            "--listen-client-urls=unix://client:0",
            "--advertise-client-urls=unix://client:0",
            "--log-level=warn",
            "--unsafe-no-fsync",
        ]

    def _api_server(self) -> list[str | Path]:
        return [
            self._binaries["kube-apiserver"],
            "--etcd-servers=unix://client:0",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--tls-cert-file=server.crt",
            "--tls-private-key-file=server.key",
            "--client-ca-file=ca.crt",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={self.url}",
            "--service-account-key-file=sa.pub",
            "--service-account-signing-key-file=sa.key",
            "--service-cluster-ip-range=10.96.0.0/16",
            # The default reconciler refuses a loopback address as the endpoint of the kubernetes service.
            "--endpoint-reconciler-type=none",
            "--profiling=false",
        ]

    def _controller_manager(self) -> list[str | Path]:
        return [
            self._binaries["kube-controller-manager"],
            "--kubeconfig=manager.kubeconfig",
            f"--controllers={','.join(CONTROLLERS)}",
            "--service-account-private-key-file=sa.key",
            "--root-ca-file=ca.crt",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
        ]
