# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The health of a registered cluster, as a check found it. It sends no requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ..common.text import shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..kube.errors import Forbidden, KubeError, NotFound, Unauthorized, Unreachable, Untrusted
from ..kube.untrusted import BadKubeconfig, Expiry

HEALTHY, EXPIRING = "Healthy", "CredentialsExpiring"
UNREACHABLE, UNTRUSTED, UNAUTHORIZED, FORBIDDEN = "Unreachable", "Untrusted", "Unauthorized", "Forbidden"
SECRET_NOT_FOUND, BAD_KUBECONFIG, SERVER_ERROR = "SecretNotFound", "BadKubeconfig", "ServerError"
EXPIRY_WARNING = timedelta(days=14)
MESSAGE_LIMIT, VERSION_LIMIT = 1024, 255


class SecretNotFound(NotFound):
    """The Secret of a registered cluster does not exist."""


@dataclass(frozen=True)
class ClusterHealth:
    """The result of a health check. None means unknown: the check did not get that far."""

    reason: str
    reachable: bool | None = None
    authenticated: bool | None = None
    message: str = ""
    version: str = ""
    last_seen: datetime | None = None
    credentials_expire: datetime | None = None

    @property
    def healthy(self) -> bool:
        return self.reason in (HEALTHY, EXPIRING)

    @classmethod
    def of_error(cls, error: KubeError) -> ClusterHealth:
        """The health that an error of the check means. A cluster is unreachable only if nothing answered."""
        text = shortened(str(error), MESSAGE_LIMIT)
        if isinstance(error, SecretNotFound):
            return cls(SECRET_NOT_FOUND, message=text)
        if isinstance(error, BadKubeconfig):
            return cls(BAD_KUBECONFIG, message=text)
        if isinstance(error, Untrusted):
            return cls(UNTRUSTED, reachable=True, message=text)
        if isinstance(error, Unreachable):
            return cls(UNREACHABLE, reachable=False, message=text)
        # An API server that ignores the kind of credentials treats the client as anonymous.
        if isinstance(error, Unauthorized) or (isinstance(error, Forbidden) and "system:anonymous" in text):
            return cls(UNAUTHORIZED, reachable=True, authenticated=False, message=text)
        if isinstance(error, Forbidden):
            return cls(FORBIDDEN, reachable=True, authenticated=True, message=text)
        return cls(SERVER_ERROR, reachable=True, message=text)

    def with_expiry(self, expiry: Expiry | None, now: datetime) -> ClusterHealth:
        """Add when the credentials expire, with a message if that is soon or explains a refusal."""
        if expiry is None:
            return self
        dated = replace(self, credentials_expire=expiry.moment)
        day = f"{expiry.moment:%Y-%m-%d %H:%M} UTC"
        if self.reason == HEALTHY and expiry.moment - now < EXPIRY_WARNING:
            return replace(dated, reason=EXPIRING, message=f"The {expiry.what} expires on {day}: update the Secret before.")
        if self.reason == UNAUTHORIZED and expiry.moment <= now:
            return replace(dated, message=shortened(f"The {expiry.what} expired on {day}: update the Secret.", MESSAGE_LIMIT))
        return dated

    @classmethod
    def from_status(cls, entry: Mapping[str, Any]) -> ClusterHealth:
        return cls(
            reason=str(entry.get("reason", "")),
            reachable=entry.get("reachable"),
            authenticated=entry.get("authenticated"),
            message=str(entry.get("message", "")),
            version=str(entry.get("version", "")),
            last_seen=parse_time(str(entry.get("lastSeen", ""))),
            credentials_expire=parse_time(str(entry.get("credentialsExpire", ""))),
        )

    def to_status(self, name: str) -> Object:
        values = {
            "name": name,
            "reachable": self.reachable,
            "authenticated": self.authenticated,
            "version": self.version[:VERSION_LIMIT] or None,
            "lastSeen": format_time(self.last_seen) if self.last_seen else None,
            "credentialsExpire": format_time(self.credentials_expire) if self.credentials_expire else None,
            "reason": self.reason,
            "message": self.message or None,
        }
        return {key: value for key, value in values.items() if value is not None}
