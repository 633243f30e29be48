# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether labels match a LabelSelector, by the rules of Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.types import Object


def matches(labels: Mapping[str, str], selector: Object) -> bool:
    """An empty selector matches everything."""
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    return all(labels.get(name) == value for name, value in wanted.items()) and all(_holds(labels, each) for each in expressions)


def _holds(labels: Mapping[str, str], expression: Object) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[expression["operator"]]
