# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Changes of a placement decision, and its form in the state of a workload. It sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..common.types import Object
from .interfaces import Decision


def placed(decision: Decision, cluster: str) -> Decision:
    """The workload is placed on the cluster. Copies on other clusters are retained as before."""
    return Decision(cluster, tuple(name for name in decision.retained if name != cluster))


def retained(decision: Decision, cluster: str) -> Decision:
    """The workload is no longer placed on the cluster, which keeps its copy."""
    home = "" if decision.cluster == cluster else decision.cluster
    return Decision(home, (*(name for name in decision.retained if name != cluster), cluster))


def cleared(decision: Decision, cluster: str) -> Decision:
    """The workload is removed from the cluster."""
    home = "" if decision.cluster == cluster else decision.cluster
    return Decision(home, tuple(name for name in decision.retained if name != cluster))


def from_content(content: Mapping[str, Any]) -> Decision:
    """The state machine names at most one cluster that keeps its copy, without a list."""
    kept = content.get("retained") or ()
    return Decision(str(content.get("cluster") or ""), (kept,) if isinstance(kept, str) else tuple(map(str, kept)))


def to_content(decision: Decision) -> Object:
    return {"cluster": decision.cluster, "retained": list(decision.retained)}


def preferred_decision(decision: Decision) -> Object:
    """The decision as status.preferredDecision of a DRPlacementControl shows it."""
    return {"clusterName": decision.cluster, "clusterNamespace": decision.cluster} if decision.cluster else {}
