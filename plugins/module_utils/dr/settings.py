# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings of disaster recovery on a cluster: one ConfigMap, which is read at each reconcile.

So a change applies to the next reconcile of a running system.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..common.text import did_you_mean
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError

CONFIG_MAP = "dr-settings"
DIRECT, ACM = "direct", "acm"
MODES = (DIRECT, ACM)
KEYS = ("dr_mode", "compare", "registry", "acm_hub_secret", "timeout", "ops_namespace")
TIMEOUT = 10.0


class InvalidDrSettings(KubeError):
    """The settings have mistakes. Nothing is done before they are corrected."""

    retryable = True


@dataclass(frozen=True)
class DrSettings:
    """`registry` names the ClusterRegistry, `acm_hub_secret` a Secret with the kubeconfig of the ACM hub, both beside the ConfigMap.

    Without `acm_hub_secret` the ACM hub is the cluster that has the ConfigMap. `timeout` is for all requests for one answer of a
    cluster together. Only DRPlacementControls in `ops_namespace` protect other namespaces than their own.
    """

    mode: str = DIRECT
    compare: bool = False
    registry: str = "peers"
    acm_hub_secret: str = ""
    timeout: float = TIMEOUT
    ops_namespace: str = "openshift-dr-ops"


def read_settings(kube: Kube, namespace: str) -> DrSettings:
    """The settings, with defaults for what the ConfigMap does not set."""
    return parse_settings(kube.find("v1", "ConfigMap", CONFIG_MAP, namespace) or {}, namespace)


def parse_settings(item: Object, namespace: str) -> DrSettings:
    data = {key: str(value).strip() for key, value in (item.get("data") or {}).items()}
    mistakes = [f"{key} is not a setting{did_you_mean(key, KEYS)}" for key in data if key not in KEYS]
    mode, compare = data.get("dr_mode") or DIRECT, data.get("compare") or "false"
    if mode not in MODES:
        mistakes.append(f"dr_mode is {mode[:40]!r}: set {DIRECT} or {ACM}")
    if compare not in ("true", "false"):
        mistakes.append(f"compare is {compare[:40]!r}: set true or false")
    timeout = _seconds(data.get("timeout") or str(TIMEOUT))
    if timeout is None:
        mistakes.append("timeout is not between 1 and 300 seconds")
    if mistakes or timeout is None:
        raise InvalidDrSettings(f"ConfigMap {namespace}/{CONFIG_MAP} cannot be used: {'; '.join(mistakes)}.")
    return DrSettings(
        mode,
        compare == "true",
        data.get("registry") or DrSettings.registry,
        data.get("acm_hub_secret", ""),
        timeout,
        data.get("ops_namespace") or DrSettings.ops_namespace,
    )


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 1 <= seconds <= 300 else None
