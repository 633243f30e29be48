"""The shipped alerts and dashboards of one folder, and an evaluator for the few forms that the alerts use.

It knows a function of series with labels, a rate, a quotient, and a threshold. A minimum by a label fires if one of its values does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

MANIFESTS = Path(__file__).resolve().parents[3] / "extensions/eda/deploy/kubernetes"
SELECTOR = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})?(?:\[(?P<minutes>\d+)m\])?")
TERM = re.compile(r"(?P<function>sum|max|min by \(\w+\) |absent)\((?:rate\((?P<rated>[^)]+)\)|(?P<plain>[^)]+))\)")
Samples = list[tuple[str, Mapping[str, str], float]]


class Monitoring:
    """The files of a folder. `alerts` are by name."""

    def __init__(self, folder: str) -> None:
        path = MANIFESTS / folder
        groups = yaml.safe_load((path / "prometheus_rule.yaml").read_text(encoding="utf-8"))["spec"]["groups"]
        self.alerts: dict[str, Any] = {rule["alert"]: rule for rule in groups[0]["rules"]}
        self._panels = json.loads((path / "dashboard.json").read_text(encoding="utf-8"))["panels"]

    def firing(self, before: Samples, after: Samples) -> list[str]:
        """The alerts that fire between two scrapes."""
        return [name for name, rule in self.alerts.items() if _fires(rule["expr"], before, after)]

    def say_what_to_do(self) -> bool:
        rules = self.alerts.values()
        return all(rule["annotations"].keys() == {"summary", "description"} and rule["for"] for rule in rules)

    def shown(self, *prefixes: str) -> set[str]:
        """The series of the dashboard with one of the prefixes."""
        expressions = [target["expr"] for panel in self._panels for target in panel["targets"]]
        return {name for each in expressions for name in re.findall(rf"\b(?:{'|'.join(prefixes)})_\w+", each)}


def samples(*texts: bytes) -> Samples:
    """What a scrape of these metrics brings."""
    families = [family for text in texts for family in text_string_to_metric_families(text.decode())]
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def names(scraped: Samples) -> set[str]:
    return {name for name, _labels, _value in scraped}


def metrics_of(series: set[str], *prefixes: str) -> set[str]:
    """The metrics with one of the prefixes among these series."""
    own = {name for name in series if name.startswith(tuple(f"{prefix}_" for prefix in prefixes)) and "_created" not in name}
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in own}


def _values(selector: str, scraped: Samples) -> tuple[list[float], int]:
    """The values of the series that a selector means, and the minutes of its range."""
    found = SELECTOR.fullmatch(selector)
    assert found, selector
    matchers = re.findall(r'(\w+)(=~?)"([^"]*)"', found["labels"] or "")

    def matches(labels: Mapping[str, str]) -> bool:
        return all(re.fullmatch(text if how == "=~" else re.escape(text), labels.get(name, "")) for name, how, text in matchers)

    return [value for name, labels, value in scraped if name == found["name"] and matches(labels)], int(found["minutes"] or 0)


def _term(found: re.Match[str], before: Samples, after: Samples) -> float | None:
    """The value of one function of series, between two scrapes where it is a rate; None for no series."""
    now, minutes = _values(found["rated"] or found["plain"], after)
    function = found["function"].partition(" ")[0]
    if function == "absent":
        return None if now else 1.0
    if found["rated"]:
        earlier, _minutes = _values(found["rated"], before)
        return (sum(now) - sum(earlier)) / (minutes * 60) if now else None
    return {"sum": sum, "max": max, "min": min}[function](now) if now else None


def _fires(expression: str, before: Samples, after: Samples) -> bool:
    comparison = re.fullmatch(r"(.*?) ([<>]) ([\d.]+)", expression)
    terms = [_term(found, before, after) for found in TERM.finditer(expression)]
    assert TERM.sub("", comparison[1] if comparison else expression).strip() in ("", "/"), expression
    if None in terms:
        return False
    known = [value for value in terms if value is not None]
    if len(known) == 2 and not known[1]:
        return False
    value = known[0] / known[1] if len(known) == 2 else known[0]
    if comparison is None:
        return bool(value)
    return value < float(comparison[3]) if comparison[2] == "<" else value > float(comparison[3])
