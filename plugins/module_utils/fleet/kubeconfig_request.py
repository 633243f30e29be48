# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A request for a short-lived kubeconfig of a cluster, and its answer, as a Secret in the namespace of the hub. Pure; both ends use it.

The facade creates the Secret, the agent of the hub answers in it, the facade reads the answer and deletes it. The agent deletes what is
older than five minutes, so that no answer stays at home.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..common import bounded_yaml
from ..common.text import shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..kube.errors import BadCredentials
from ..kube.untrusted import target_of
from .kinds import GROUP, hub_namespace

TYPE = f"{GROUP}/kubeconfig-request"  # of the Secret
LABEL = f"{GROUP}/kubeconfig-request"  # its value is the uid of the cluster
EXPIRES_AT = f"{GROUP}/expires-at"  # an annotation of an answered request
NAME_PREFIX = "kubeconfig-"
MAX_AGE = timedelta(minutes=5)
SHORTEST_SECONDS, DEFAULT_SECONDS, LONGEST_SECONDS = 600, 3600, 86400  # the API server gives no token for less than ten minutes
USER_LIMIT, ERROR_LIMIT = 1024, 1024
ACCESS_NAMESPACE = "openfleet-access"  # in the cluster of the tenant
ACCOUNT_PREFIX = "openfleet-"


class BadRequest(ValueError):
    """The request cannot be answered. The message is one sentence."""


@dataclass(frozen=True)
class KubeconfigRequest:
    """Who asks for a kubeconfig of which cluster, and for how long."""

    uid: str
    user: str
    expiration_seconds: int = DEFAULT_SECONDS

    def to_secret(self, hub: str) -> Object:
        """The Secret to create; its name is random."""
        data = {"user": _encoded(self.user), "expirationSeconds": _encoded(str(self.expiration_seconds))}
        metadata = {"name": f"{NAME_PREFIX}{secrets.token_hex(8)}", "namespace": hub_namespace(hub), "labels": {LABEL: self.uid}}
        return {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata, "data": data}

    @classmethod
    def from_secret(cls, secret: Object) -> KubeconfigRequest:
        """BadRequest where the Secret is no valid request."""
        data = secret.get("data") or {}
        uid, user, seconds = (
            (secret["metadata"].get("labels") or {}).get(LABEL, ""),
            _decoded(data, "user"),
            _decoded(data, "expirationSeconds"),
        )
        if not uid or not user or len(user) > USER_LIMIT:
            raise BadRequest("The request for a kubeconfig names no cluster or no user.")
        if not (seconds.isascii() and seconds.isdecimal()) or not SHORTEST_SECONDS <= int(seconds[:9]) <= LONGEST_SECONDS:
            raise BadRequest(f"expirationSeconds must be between {SHORTEST_SECONDS} and {LONGEST_SECONDS}.")
        return cls(uid, user, int(seconds))

    @property
    def account(self) -> str:
        """The ServiceAccount of the user in the cluster: one for each user, whatever characters the name has."""
        return f"{ACCOUNT_PREFIX}{hashlib.sha256(self.user.encode()).hexdigest()[:24]}"


@dataclass(frozen=True)
class KubeconfigAnswer:
    """The answer of the agent: a kubeconfig until `expires_at`, or why there is none."""

    kubeconfig: str = field(default="", repr=False)
    error: str = ""
    expires_at: datetime | None = None

    def apply_to(self, request: Object) -> Object:
        """The Secret with the answer, to replace the request with. Its resourceVersion makes that conditional."""
        metadata = dict(request["metadata"])
        if self.expires_at:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), EXPIRES_AT: format_time(self.expires_at)}
        answer = {"error": shortened(self.error, ERROR_LIMIT)} if self.error else {"kubeconfig": self.kubeconfig}
        return {**request, "metadata": metadata, "data": {**request["data"], **{key: _encoded(value) for key, value in answer.items()}}}

    @classmethod
    def from_secret(cls, secret: Object) -> KubeconfigAnswer | None:
        """The answer; None while the agent has not answered. A kubeconfig that names files or commands is an error."""
        data = secret.get("data") or {}
        expires_at = parse_time((secret["metadata"].get("annotations") or {}).get(EXPIRES_AT))
        kubeconfig, error = _decoded(data, "kubeconfig"), _decoded(data, "error")
        if error:
            return cls(error=shortened(error, ERROR_LIMIT))
        if kubeconfig and not _is_usable(kubeconfig):
            return cls(error="The hub answered with a kubeconfig that cannot be used: report it to the operator of the fleet.")
        return cls(kubeconfig, "", expires_at) if kubeconfig else None


def is_request(secret: Object) -> bool:
    return secret.get("type") == TYPE


def is_too_old(secret: Object, now: datetime) -> bool:
    """Whether the agent deletes the request, answered or not."""
    created = parse_time(secret["metadata"].get("creationTimestamp"))
    return created is None or now - created > MAX_AGE


def kubeconfig_for(name: str, cluster: Mapping[str, Any], token: str) -> str:
    """A kubeconfig with a token, for the `cluster` entry of another kubeconfig. It is JSON, which is YAML too."""
    kept = {key: cluster[key] for key in ("server", "certificate-authority-data", "tls-server-name", "proxy-url") if cluster.get(key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": kept}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(content, indent=2) + "\n"


def _is_usable(kubeconfig: str) -> bool:
    """Whether it is a kubeconfig that runs no command and reads no file on the machine of the user."""
    try:
        content = bounded_yaml.load(kubeconfig)
        return isinstance(content, dict) and bool(target_of(content).token)
    except (bounded_yaml.BadYaml, BadCredentials):
        return False


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(data: Mapping[str, Any], key: str) -> str:
    """The text of a value; empty where it is none."""
    try:
        return base64.b64decode(str(data.get(key) or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
