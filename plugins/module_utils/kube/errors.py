# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The errors of requests to an API server, as one family; each message has what failed, why, and what to do."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from typing import Any

from ..common.text import shortened


class KubeError(Exception):
    """The base of the family. `retryable` says whether the same request may succeed later, unchanged."""

    retryable = False


class BadCredentials(KubeError):
    """The connection is configured wrongly: no such kubeconfig, context, file, or plugin."""


class AddressNotAllowed(KubeError):
    """The site does not connect to this host for a tenant."""

    def __init__(self, host: str) -> None:
        super().__init__(f"The site does not allow connections to {shortened(host, 255)}: ask its operator to add it to allowed_addresses.")


class ReadOnly(KubeError):
    """A write over a connection that only reads. It was not sent."""


class Unexpected(KubeError):
    """An unexpected error in the work for one object of several. The work for the others goes on."""

    retryable = True

    def __init__(self, fault: BaseException) -> None:
        # The line, not the message of the exception: that may contain a secret.
        lines = traceback.extract_tb(fault.__traceback__)[-1:]
        where = "".join(f" at line {line.lineno} of {line.filename.rpartition('/')[2]}" for line in lines)
        super().__init__(f"An unexpected {type(fault).__name__}{where}. Report it to the authors of openfleet.clusters.")


class Unreachable(KubeError):
    """No answer: wrong address, network down, certificate not trusted, or the connection broke."""

    retryable = True


class AnswerLost(Unreachable):
    """The request may have arrived, and no answer came: the server may have processed it."""


class Untrusted(Unreachable):
    """The server's certificate is not signed for this address by a known authority."""


class Unauthorized(KubeError):
    """401: the server does not accept the credentials."""


class Forbidden(KubeError):
    """403: the account has no permission for the request."""


class NamespaceTerminating(Forbidden):
    """403: the namespace is being deleted, and nothing can be created in it."""


class NotFound(KubeError):
    """404: the object, or its kind, does not exist."""


class Conflict(KubeError):
    """409: the object has changed since it was read, or exists already."""

    retryable = True


class ApplyConflict(Conflict):
    """409 of a server-side apply: other managers own fields that were to be set. `fields` has them by manager."""

    retryable = False

    def __init__(self, message: str, fields: Mapping[str, list[str]]) -> None:
        super().__init__(message)
        self.fields = dict(fields)


class Gone(KubeError):
    """410: a watch or a page starts too far in the past; list again."""

    retryable = True


class Invalid(KubeError):
    """400 or 422: the server refuses the content. `fields` names the invalid fields."""

    def __init__(self, message: str, fields: list[str]) -> None:
        super().__init__(message)
        self.fields = fields


class TooManyRequests(KubeError):
    """429: the server is busy, and was still busy after the retries."""

    retryable = True


class ServerError(KubeError):
    """5xx: the server failed."""

    retryable = True


def error_from(status: int, body: Any, what: str) -> KubeError:
    """The error for an HTTP response; `what` describes the request, `body` is a Kubernetes Status object where there is one."""
    content: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    message = str(content.get("message") or body or f"HTTP status {status}").strip()
    details = content.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    causes = [cause for cause in causes or [] if isinstance(cause, Mapping)]
    if status == 409 and (owners := _owners(causes)):
        described = "; ".join(f"{manager} owns {', '.join(fields)}" for manager, fields in owners.items())
        return ApplyConflict(f"{what}: {described}. Remove the fields from one of the two, or release them in the other manager.", owners)
    if status == 403 and any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return NamespaceTerminating(f"{what}: the namespace is being deleted, and nothing can be created in it.")
    if status == 403 and "attempting to grant RBAC permissions" in message:
        # The server lists all permissions of the role, a hundred lines of them.
        refused = message.partition(" (groups=")[0].partition(" is attempting")[0]
        return Forbidden(f"{what}: {refused} cannot bind a role with more permissions than its own; grant the verb bind of that role")
    if status in (400, 422):
        return Invalid(f"{what}: {message}", [str(cause["field"]) for cause in causes if cause.get("field")])
    if message.startswith("failed to create typed patch object"):
        # A server-side apply with an unknown field, or one of a wrong type: the server reports a 500.
        return Invalid(f"{what}: {' '.join(message.split())}", re.findall(r"\s\.(\S+): ", message))
    simple: dict[int, tuple[type[KubeError], str]] = {
        401: (Unauthorized, "the server does not accept the credentials; check the kubeconfig or the token"),
        403: (Forbidden, f"{message}; grant the verb to the user or service account"),
        # For an unknown kind the response is the plain text of an unknown path.
        404: (NotFound, message if content else "the server does not serve this kind; check its apiVersion, or install its CRD"),
        409: (Conflict, message),
        410: (Gone, message),
        415: (KubeError, "the server does not support this kind of request; server-side apply needs Kubernetes 1.22 or newer"),
        429: (TooManyRequests, "the server is overloaded; try again later"),
    }
    kind, text = simple.get(status, (ServerError if status >= 500 else KubeError, message))
    return kind(f"{what}: {text}")


def foreign_error(status: int, body: Any, what: str) -> KubeError:
    """The error for a response of a server that the site does not trust. Nothing of the response is in it but its status."""
    # An API server that ignores the kind of credentials treats the client as anonymous.
    if status == 403 and "system:anonymous" in str(body):
        return Forbidden(f"{what}: the cluster treats the account of the kubeconfig as system:anonymous (HTTP status 403)")
    known: dict[int, tuple[type[KubeError], str]] = {
        401: (Unauthorized, "the cluster does not accept the credentials; check the kubeconfig"),
        403: (Forbidden, "the account of the kubeconfig has no permission"),
        404: (NotFound, "the cluster does not have it"),
        409: (Conflict, "it has changed, or exists already"),
        410: (Gone, "the list is too old"),
        429: (TooManyRequests, "the cluster is overloaded; try again later"),
    }
    kind, reason = known.get(status, (ServerError if status >= 500 else KubeError, "the request failed"))
    text = f"{what}: {reason} (HTTP status {status})"
    return Invalid(text, []) if status in (400, 422) else kind(text)


def _owners(causes: list[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The managers named in the causes of an apply conflict, each with the fields it owns."""
    owners: dict[str, list[str]] = {}
    for cause in causes:
        if cause.get("reason") == "FieldManagerConflict":
            manager = str(cause.get("message", "")).partition('"')[2].partition('"')[0] or "another manager"
            owners.setdefault(manager, []).append(str(cause.get("field", "")))
    return owners
