"""A real OpenID Connect issuer: the npm package oidc-provider, installed once into the user's cache, as a process.

Its versions and checksums are in oidc/package-lock.json.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jwt
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.gobuild import cache_folder, only_one
from ansible_collections.openfleet.clusters.extensions.sandbox.launcher import die_with_me
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from cryptography.hazmat.primitives.asymmetric import ec, rsa

SOURCES = Path(__file__).parent / "oidc"
TOOLS = ("node", "npm")
MISSING = next((tool for tool in TOOLS if not shutil.which(tool)), "")
INSTALL_SECONDS = 300


def installed() -> Path:
    """The folder with the package, for these versions."""
    files = [SOURCES / name for name in ("package.json", "package-lock.json", "server.js")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = cache_folder() / f"oidc-{digest}"
    with only_one(folder.with_suffix(".lock")):
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            for file in files:
                shutil.copy(file, part)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=part, check=True, capture_output=True, timeout=INSTALL_SECONDS)
            part.rename(folder)
    return folder


def private_keys(prefix: str) -> dict[str, Any]:
    """A JWK set with a key for RS256 and one for ES256."""
    rsa_key = jwt.algorithms.RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048), as_dict=True)
    ec_key = jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)
    unneeded = {"key_ops"}
    keys = [
        rsa_key | {"kid": f"{prefix}-rsa", "use": "sig", "alg": "RS256"},
        ec_key | {"kid": f"{prefix}-ec", "use": "sig", "alg": "ES256"},
    ]
    return {"keys": [{name: value for name, value in key.items() if name not in unneeded} for key in keys]}


class OidcIssuer:
    """One issuer. It keeps its address when it is started again with other keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, prefix: str, page: str = "") -> None:
        """With a `page`, users of that address can log in."""
        keys = self._folder / f"{prefix}.json"
        keys.write_text(json.dumps(private_keys(prefix)), encoding="utf-8")
        command = [shutil.which("node") or "", "server.js", str(self.port), str(keys), *([page] if page else [])]
        with open(self._folder / "oidc.log", "ab") as log:
            self._process = subprocess.Popen(
                die_with_me(command), cwd=installed(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout
        for line in self._process.stdout:
            if line.strip() == b"listening":
                return
        raise AssertionError((self._folder / "oidc.log").read_text(encoding="utf-8"))

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def token(self, client: str, resource: str = "urn:fleet") -> str:
        """A token that the client asks for itself."""
        body = urlencode({"grant_type": "client_credentials", "resource": resource})
        headers = urllib3.make_headers(basic_auth=f"{client}:test") | {"Content-Type": "application/x-www-form-urlencoded"}
        answer = urllib3.request("POST", f"{self.url}/token", body=body, headers=headers, retries=False)
        assert answer.status == 200, answer.data
        return str(answer.json()["access_token"])
