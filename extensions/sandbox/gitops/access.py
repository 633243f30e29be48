"""How tests and demos use the sandbox's git server, chart repository and OCI registry: to commit, to publish, to push."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from ....plugins.module_utils.common.types import Object
from ..access import until
from ..gobuild import only_one
from ..processes import write_private
from ..screen import UserError
from .charts import Chart, digest, index
from .git import git_command, git_environment

NAME = re.compile(r"[a-z0-9-]+")
CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
CHART_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class GitServer:
    """The git server: its address, who may read and push, and the folder of its bare repositories."""

    url: str
    username: str
    token: str
    folder: Path

    def repository(self, name: str) -> Repository:
        """The repository of this name, created empty where it is missing."""
        bare = self.folder / f"{_checked(name)}.git"
        if not bare.exists():
            _git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
        return Repository(self, name)


@dataclass(frozen=True)
class Repository:
    """One repository of the git server."""

    server: GitServer
    name: str

    @property
    def url(self) -> str:
        return f"{self.server.url}/{self.name}.git"

    def commit(self, files: dict[str, str | None], message: str = "Change files", branch: str = "main") -> str:
        """Change files, push them to the branch over HTTP, and return the commit. None deletes a file."""
        clone = self.server.folder.parent / "clones" / self.name
        with only_one(clone.with_suffix(".lock")):
            if not clone.exists():
                self._git("clone", "--quiet", self.url, str(clone))
            self._git("-C", str(clone), "fetch", "--quiet", "--prune")
            known = self._git("-C", str(clone), "branch", "--remotes", "--list", f"origin/{branch}")
            start = ["-B", branch, f"origin/{branch}"] if known else ["-B", branch]
            self._git("-C", str(clone), "checkout", "--quiet", "--force", *start)
            for path, content in files.items():
                file = clone / path
                if content is None:
                    file.unlink()
                else:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(content, encoding="utf-8")
            self._git("-C", str(clone), "add", "--all")
            self._git("-C", str(clone), "commit", "--quiet", "--allow-empty", "--message", message)
            self._git("-C", str(clone), "push", "--quiet", "origin", branch)
            return self._git("-C", str(clone), "rev-parse", "HEAD")

    def secret(self, name: str, namespace: str) -> Object:
        """The Secret that a GitRepository of Flux refers to."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {"username": self.server.username, "password": self.server.token},
        }

    def _git(self, *arguments: str) -> str:
        token = base64.b64encode(f"{self.server.username}:{self.server.token}".encode()).decode()
        # By environment: a command line is visible to every user of the machine.
        settings = {"http.extraHeader": f"Authorization: Basic {token}", "user.name": "Sandbox", "user.email": "sandbox@example.com"}
        return _git(*arguments, settings=settings)


@dataclass(frozen=True)
class ChartRepository:
    """A Helm repository over HTTP: its address, and the folder of its index and its charts."""

    url: str
    folder: Path

    def named(self, name: str) -> ChartRepository:
        """A repository of its own below this one."""
        return ChartRepository(f"{self.url}/{_checked(name)}", self.folder / name)

    def publish(self, *charts: Chart) -> None:
        """Add charts. One of the same name and version is replaced, which a real repository would not allow."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with only_one(self.folder / ".lock"):
            file = self.folder / "index.yaml"
            entries = yaml.safe_load(file.read_text(encoding="utf-8"))["entries"] if file.exists() else {}
            added = yaml.safe_load(index(charts))
            for name, new in added["entries"].items():
                versions = {entry["version"] for entry in new}
                entries[name] = [*new, *(entry for entry in entries.get(name, []) if entry["version"] not in versions)]
            for chart in charts:
                write_private(self.folder / chart.file_name, chart.archive())
            write_private(file, yaml.safe_dump(added | {"entries": entries}))


@dataclass(frozen=True)
class OciRegistry:
    """An OCI registry over HTTP. Its clients need a setting for that: Flux `insecure: true`."""

    address: str

    @property
    def url(self) -> str:
        return f"oci://{self.address}"

    def push(self, repository: str, chart: Chart) -> str:
        """Push a chart as `helm push` does, to `<repository>/<chart's name>:<version>`; returns the digest of its manifest."""
        archive, config = chart.archive(), json.dumps(chart.metadata).encode()
        path = f"http://{self.address}/v2/{repository}/{chart.name}"
        for content in (config, archive):
            location = self._send("POST", f"{path}/blobs/uploads/").headers["Location"]
            mark = "&" if "?" in location else "?"
            self._send("PUT", f"{location}{mark}digest=sha256:{digest(content)}", content, "application/octet-stream")
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(CONFIG_TYPE, config),
            "layers": [_descriptor(CHART_TYPE, archive)],
            "annotations": {"org.opencontainers.image.title": chart.name, "org.opencontainers.image.version": chart.version},
        }
        # A tag cannot have a plus sign.
        tag = chart.version.replace("+", "_")
        return self._send("PUT", f"{path}/manifests/{tag}", json.dumps(manifest).encode(), MANIFEST_TYPE).headers["Docker-Content-Digest"]

    def _send(self, method: str, url: str, body: bytes = b"", kind: str = "") -> urllib3.BaseHTTPResponse:
        answer = urllib3.request(method, url, body=body, headers={"Content-Type": kind} if kind else {}, retries=False, timeout=30)
        if answer.status >= 300:
            raise UserError(f"The OCI registry answers {answer.status} to {method} {url}: {answer.data.decode(errors='replace')}")
        return answer


@dataclass(frozen=True)
class Gitea:
    """The forge: its address, and the name and token of its administrator."""

    url: str
    username: str
    token: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call its API, below `/api/v1`, and return the decoded answer."""
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        content = json.dumps(body).encode() if body is not None else None
        answer = urllib3.request(method, f"{self.url}/api/v1{path}", body=content, headers=headers, retries=False, timeout=60)
        if answer.status >= 300:
            raise UserError(f"Gitea answers {answer.status} to {method} {path}: {answer.data.decode(errors='replace')[:500]}")
        return json.loads(answer.data) if answer.data else None

    def merge(self, repository: str, number: int) -> None:
        """Merge a pull request. Gitea first checks in the background whether it can be merged, and asks to try again until it knows."""

        def is_merged() -> bool:
            try:
                self.call("POST", f"/repos/{repository}/pulls/{number}/merge", {"Do": "merge"})
            except UserError as error:
                if "try again later" in str(error):
                    return False
                raise
            return True

        until(is_merged, f"the pull request {number} of {repository} is merged", 120)

    def create_repository(self, name: str) -> str:
        """Create a repository of the administrator with a first commit on `main`; returns the address to clone it from."""
        made = self.call("POST", "/user/repos", {"name": _checked(name), "auto_init": True, "default_branch": "main", "private": True})
        return str(made["clone_url"])


@dataclass(frozen=True)
class GitOpsAccess:
    """The services that `openfleet-sandbox up --gitops` starts."""

    git: GitServer
    charts: ChartRepository
    registry: OciRegistry

    @classmethod
    def of(cls, folder: Path, description: dict[str, Any]) -> GitOpsAccess:
        """As the description of the services in `folder` has it."""
        return cls(
            GitServer(f"{description['url']}/git", description["username"], description["token"], folder / "git"),
            ChartRepository(f"{description['url']}/charts", folder / "charts"),
            OciRegistry(description["registry"]),
        )


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{digest(content)}", "size": len(content)}


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot be the name of a repository: use lower-case letters, digits and dashes.")
    return name


def _git(*arguments: str, settings: dict[str, str] | None = None) -> str:
    environment = os.environ | git_environment() | {"GIT_CONFIG_COUNT": str(len(settings or {}))}
    for number, (key, value) in enumerate((settings or {}).items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    result = subprocess.run(git_command(*arguments), env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"git {arguments[0]} failed: {result.stderr.strip()}")
    return result.stdout.strip()
