# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The release of a HostedCluster: requested, rolled out, refused, running. Pure; it sends nothing.

HyperShift passes a requested image on to the control plane only when it accepts it. So an update that it refuses, or has not
observed yet, is one whose image is not the desired one of the reported version.
"""

from __future__ import annotations

from ...common.types import Object
from ..model import FALSE
from ..objects import condition_state_of, is_true

BLOCKED = "Blocked"


def requested_image(cluster: Object) -> str:
    return str(((cluster.get("spec") or {}).get("release") or {}).get("image") or "")


def is_installed(cluster: Object) -> bool:
    """Whether a release is, or was, installed completely."""
    return any(entry.get("state") == "Completed" for entry in _history(cluster))


def running_version(cluster: Object) -> str:
    """The version of the newest release that is installed completely."""
    return next((str(entry.get("version") or "") for entry in _history(cluster) if entry.get("state") == "Completed"), "")


def desired_version(cluster: Object) -> str:
    """The version of the requested release; its image until HyperShift reports the version."""
    desired = _version(cluster).get("desired") or {}
    return requested_image(cluster) if _is_pending(cluster) else str(desired.get("version") or requested_image(cluster))


def available_updates(cluster: Object) -> tuple[str, ...]:
    return tuple(str(update["version"]) for update in _version(cluster).get("availableUpdates") or [] if update.get("version"))


def is_rolling_out(cluster: Object) -> bool:
    """Whether a release is not completely installed on the control plane. HyperShift's Progressing can be False until then."""
    history = _history(cluster)
    return _is_pending(cluster) or is_true(cluster, "Progressing") or (bool(history) and history[0].get("state") != "Completed")


def refusal(cluster: Object) -> str:
    """Why HyperShift refuses to update an installed cluster to the requested release; empty where it does not. The cluster runs on."""
    if not is_installed(cluster) or not _is_pending(cluster):
        return ""
    valid, progressing = condition_state_of(cluster, "ValidReleaseImage"), condition_state_of(cluster, "Progressing")
    if valid and valid.status == FALSE:
        return f"HyperShift refuses the release {requested_image(cluster)}: ValidReleaseImage is {valid}"
    if progressing and progressing.status == FALSE and progressing.reason == BLOCKED:
        return f"HyperShift refuses the release {requested_image(cluster)}: Progressing is {progressing}"
    return ""


def _version(cluster: Object) -> Object:
    return (cluster.get("status") or {}).get("version") or {}


def _history(cluster: Object) -> list[Object]:
    """The releases, newest first."""
    return _version(cluster).get("history") or []


def _is_pending(cluster: Object) -> bool:
    """Whether the requested image has not reached the control plane."""
    desired = str((_version(cluster).get("desired") or {}).get("image") or "")
    return bool(desired) and desired != requested_image(cluster)
