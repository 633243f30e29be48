# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the agent of a hub reports to the home cluster: checks, nodes, templates, versions. It is JSON in the ConfigMap `hub-report`.

Both ends use this file. The home cluster does not trust a report: one that cannot be read, or is too large, is a failed check of its hub
and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..common.text import shortened

CONFIG_MAP, KEY = "hub-report", "report.json"
LEASE = "agent"  # its renewTime is the heartbeat
MAX_BYTES = 256 * 1024  # the status of a Hub has the templates beside up to 4000 reservations
MAX_ITEMS = 64  # of templates, classes, checks and versions
NAME_LIMIT, TITLE_LIMIT, TEXT_LIMIT = 255, 255, 1024
MAX_NODES = 1_000_000

Item = TypeVar("Item")


@dataclass(frozen=True)
class Check:
    """One thing that a hub needs. The message of a failed one says what to do."""

    name: str
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class ClassNodes:
    """The hosts of one resource class: all that work, and those that no cluster has."""

    total: int = 0
    free: int = 0


@dataclass(frozen=True)
class OfferedTemplate:
    """A template on offer. `parameters` is JSON Schema, `nodes` what a cluster gets that requests none, `classes` what it may request.

    Without `classes` it may request any.
    """

    name: str
    title: str = ""
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HubReport:
    """The report of one hub."""

    checks: tuple[Check, ...] = ()
    nodes: Mapping[str, ClassNodes] = field(default_factory=dict)
    templates: tuple[OfferedTemplate, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)  # of what the hub runs, by name
    releases: tuple[str, ...] = ()  # versions that clusters can have
    agent_version: str = ""

    @property
    def is_ready(self) -> bool:
        """A hub without any check has not been observed yet."""
        return bool(self.checks) and all(each.passed for each in self.checks)

    @property
    def missing(self) -> str:
        """The checks that failed, as sentences in the order of the report; empty where none has."""
        return " ".join(f"{each.name}: {each.message}" for each in self.checks if not each.passed)

    def to_json(self) -> str:
        """The report as text of at most MAX_BYTES: the parameters of the largest templates are left out where it would be longer."""
        report = self
        while len(text := json.dumps(_to_data(report), sort_keys=True, separators=(",", ":")).encode()) > MAX_BYTES:
            largest = max(report.templates, key=lambda each: len(json.dumps(each.parameters)), default=None)
            if largest is None or not largest.parameters:
                return _failed("The report is too large: offer fewer templates.").to_json()
            kept = tuple(replace(each, parameters={}) if each is largest else each for each in report.templates)
            report = replace(report, templates=kept)
        return text.decode()

    @classmethod
    def from_json(cls, text: str) -> HubReport:
        """The report in the text. One that cannot be read has a single check, which failed; what is too long in it is cut."""
        if len(text.encode(errors="replace")) > MAX_BYTES:
            return _failed(f"The report is larger than {MAX_BYTES:,} bytes.")
        try:
            return _from_data(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            return _failed("The report of the agent cannot be read: check the version of the agent.")


def _failed(message: str) -> HubReport:
    return HubReport(checks=(Check("report", passed=False, message=message),))


def _to_data(report: HubReport) -> dict[str, Any]:
    return {
        "checks": [{"name": each.name, "passed": each.passed, "message": each.message} for each in report.checks],
        "nodes": {name: {"total": each.total, "free": each.free} for name, each in report.nodes.items()},
        "templates": [
            {
                "name": each.name,
                "title": each.title,
                "description": each.description,
                "parameters": dict(each.parameters),
                "nodes": dict(each.nodes),
                "classes": list(each.classes),
            }
            for each in report.templates
        ],
        "versions": dict(report.versions),
        "releases": list(report.releases),
        "agentVersion": report.agent_version,
    }


def _from_data(data: Mapping[str, Any]) -> HubReport:
    return HubReport(
        _list(data, "checks", lambda each: Check(_text(each["name"], NAME_LIMIT), each["passed"] is True, _text(each.get("message", "")))),
        _mapping(data, "nodes", lambda each: ClassNodes(_count(each["total"]), _count(each["free"]))),
        _unique(_list(data, "templates", _template)),
        _mapping(data, "versions", lambda each: _text(each, NAME_LIMIT)),
        _list(data, "releases", lambda each: _text(each, NAME_LIMIT)),
        _text(data.get("agentVersion", ""), NAME_LIMIT),
    )


def _template(item: Mapping[str, Any]) -> OfferedTemplate:
    parameters = item.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise TypeError("parameters")
    return OfferedTemplate(
        _text(item["name"], NAME_LIMIT),
        _text(item.get("title", ""), TITLE_LIMIT),
        _text(item.get("description", "")),
        parameters,
        _mapping(item, "nodes", _count),
        _list(item, "classes", lambda each: _text(each, NAME_LIMIT)),
    )


def _list(data: Mapping[str, Any], key: str, parse: Callable[[Any], Item]) -> tuple[Item, ...]:
    items = data.get(key) or []
    if not isinstance(items, list):
        raise TypeError(key)
    return tuple(parse(each) for each in items[:MAX_ITEMS])


def _mapping(data: Mapping[str, Any], key: str, parse: Callable[[Any], Item]) -> dict[str, Item]:
    items = data.get(key) or {}
    return {_text(name, NAME_LIMIT): parse(each) for name, each in sorted(items.items())[:MAX_ITEMS]}


def _unique(templates: tuple[OfferedTemplate, ...]) -> tuple[OfferedTemplate, ...]:
    """The status of a Hub has each template once."""
    return tuple({each.name: each for each in templates if each.name}.values())


def _text(value: Any, limit: int = TEXT_LIMIT) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return shortened("".join(each if each.isprintable() else " " for each in value), limit)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("number")
    return min(max(value, 0), MAX_NODES)
