# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Orders as files of a repository: rendered as YAML that people can review, read back, and compared with a hub. Nothing is sent.

A file has no secret: a secret parameter refers to a Secret, and the value itself is refused.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.argument_values import clip
from ..common.bounded_yaml import BadYaml, load
from ..common.third_party import yaml
from ..common.types import Object
from ..kube.errors import Invalid
from ..templates.catalogue import Template
from ..templates.check import check
from ..templates.errors import SecretsMissing
from ..templates.site_parameters import RELEASE_IMAGE, VERSION, SiteParameter, SiteValues

KIND = "ClusterOrder"
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
FOLDER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


@dataclass(frozen=True)
class OrderFile:
    """What a file is to have; None keeps what it has."""

    namespace: str
    name: str
    template_id: str | None = None
    template_parameters: Mapping[str, Any] | None = None
    node_requests: Sequence[Mapping[str, Any]] | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None

    def path(self, folder: str) -> str:
        """Its path; Invalid where namespace, name or folder could mean another one."""
        if not NAME.fullmatch(self.namespace) or not NAME.fullmatch(self.name) or ".." in f"{self.namespace}/{self.name}":
            raise Invalid("namespace and name must be Kubernetes names: lower-case letters, digits and dashes.", ["name", "namespace"])
        if not FOLDER.fullmatch(folder):
            raise Invalid("path must be a folder of the repository, such as clusters/orders, without hidden folders.", ["path"])
        return f"{folder}/{self.namespace}/{self.name}.yaml"


def merge(wanted: OrderFile, api_version: str, before: str | None) -> Object:
    """The order of the file, changed as wanted."""
    present = read(before) if before is not None else {}
    metadata, spec = present.get("metadata") or {}, dict(present.get("spec") or {})
    if wanted.template_id is not None:
        spec["templateID"] = wanted.template_id
    if not spec.get("templateID"):
        raise Invalid("template_id is required for a new order.", ["template_id"])
    if wanted.template_parameters is not None:
        spec["templateParameters"] = json.dumps(wanted.template_parameters, indent=2, sort_keys=True, ensure_ascii=False)
    if wanted.node_requests is not None:
        spec["nodeRequests"] = [dict(item) for item in wanted.node_requests]
    merged: Object = {"name": wanted.name, "namespace": wanted.namespace}
    for key, given in (("labels", wanted.labels), ("annotations", wanted.annotations)):
        if values := {**(metadata.get(key) or {}), **(given or {})}:
            merged[key] = values
    return {"apiVersion": api_version, "kind": KIND, "metadata": merged, "spec": spec}


def validate(order: Object, template: Template) -> None:
    """InvalidOrder with every mistake that shows without the hub. What only the site knows is validated there."""
    spec = order["spec"]
    text = spec.get("templateParameters") or ""
    try:
        given = json.loads(text) if text else {}
    except ValueError:
        given = {}  # the check says so
    with contextlib.suppress(SecretsMissing):  # they are on the hub
        check(template, text, spec.get("nodeRequests"), site=_any_site(template, given if isinstance(given, dict) else {}))


def to_text(order: Object) -> str:
    """The order as YAML, with its parameters on lines of their own."""

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Any, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    plain = json.loads(json.dumps(order))  # Ansible has types of its own for values of variables, which YAML cannot represent
    return "---\n" + yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def read(text: str) -> Object:
    """The order in a file; Invalid where it has none."""
    try:
        item = load(text)
    except BadYaml as error:
        raise Invalid(f"The file {error}.", []) from None
    if not isinstance(item, dict) or item.get("kind") != KIND or not isinstance(item.get("spec") or {}, dict):
        raise Invalid(f"The file has no {KIND}.", [])
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not isinstance(metadata.get("namespace"), str):
        raise Invalid(f"The {KIND} of the file has no name or no namespace.", [])
    if wrong := _wrong_type(item.get("spec") or {}, metadata):
        raise Invalid(f"The {KIND} of the file has {wrong} of another type than orders have.", [])
    return item


def _wrong_type(spec: Object, metadata: Object) -> str:
    """The first field that this module reads and that has another type; an empty text where there is none."""
    texts = {"templateID": spec.get("templateID"), "templateParameters": spec.get("templateParameters")}
    mappings = {"labels": metadata.get("labels"), "annotations": metadata.get("annotations")}
    nodes = spec.get("nodeRequests") or []
    wrong = [name for name, value in texts.items() if not isinstance(value or "", str)]
    wrong += [name for name, value in mappings.items() if not isinstance(value or {}, dict)]
    if not isinstance(nodes, list) or not all(isinstance(each, dict) and isinstance(each.get("numberOfNodes"), int) for each in nodes):
        wrong.append("nodeRequests")
    return wrong[0] if wrong else ""


def differences(left: Object, right: Object) -> list[str]:
    """The fields of two orders that differ: of parameters and labels the names, never the values."""
    one, other = left.get("spec") or {}, right.get("spec") or {}
    found = ["templateID"] if one.get("templateID") != other.get("templateID") else []
    first, second = _parameters(one), _parameters(other)
    found += [f"templateParameters.{clip(str(key))}" for key in sorted({*first, *second}, key=str) if first.get(key) != second.get(key)]
    if _nodes(one) != _nodes(other):
        found.append("nodeRequests")
    for key in ("labels", "annotations"):
        wanted, present = (left["metadata"].get(key) or {}), (right["metadata"].get(key) or {})
        found += [f"{key}.{clip(str(name))}" for name in wanted if wanted[name] != present.get(name)]
    return found


def _parameters(spec: Mapping[str, Any]) -> dict[str, Any]:
    text = spec.get("templateParameters") or "{}"
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"(not a JSON object)": text}


def _nodes(spec: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted((str(item.get("resourceClass")), item.get("numberOfNodes")) for item in spec.get("nodeRequests") or [])


def _any_site(template: Template, given: Mapping[str, Any]) -> SiteValues:
    """A site that has whatever the order refers to, and allows no secrets in it."""
    rules = template.site_rules
    settings: dict[str, Any] = {}
    for name, path in rules.site_choices.items():
        keys, values = path.split("."), given.get(name)
        parent = settings
        for key in keys[:-1]:
            parent = parent.setdefault(key, {})
        items = values if isinstance(values, list) else [values]
        parent.setdefault(keys[-1], []).extend(str(item) for item in items)
    return SiteValues(
        parameters={name: SiteParameter(allowed=(given[name],)) for name in rules.site_parameters if name in given},
        secrets={name: "unknown" for name in rules.site_defaults if name != RELEASE_IMAGE},
        release_images={str(given[VERSION]): "unknown"} if VERSION in given else {},
        allow_inline_secrets=False,
        settings=settings,
    )
