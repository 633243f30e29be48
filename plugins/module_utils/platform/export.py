# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a platform as a document of infra.aap_configuration. Secrets are $encrypted$ in it, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..common.third_party import yaml
from ..common.types import Object
from .client import PlatformApi
from .compare import names_of
from .document import EDGES, NODE
from .kinds import ACTIVATIONS, DOCUMENT_KEYS, EDA_ORGANIZATIONS, KINDS, ROLES
from .model import Kind
from .snapshot import Snapshot, SnapshotReader
from .values import from_api

EXPORTED = tuple(key for key in DOCUMENT_KEYS if key != ROLES)
APPROVAL = "workflow_approval"


def export(api: PlatformApi, keys: Iterable[str], organization: str = "") -> Object:
    """The document of these kinds; with an organization, without objects of others."""
    wanted = [key for key in EXPORTED if key in set(keys)]
    reader = SnapshotReader(api)
    named = {kind for key in wanted for kind in _named(KINDS[key])}
    snapshot = reader.read_kinds({*wanted, *named})
    document: Object = {}
    for key in wanted:
        kind = KINDS[key]
        objects = [
            found for found in snapshot.objects[key].values() if not is_managed(found) and _is_of(kind, found, organization, snapshot)
        ]
        reader.read_lists(kind, objects)
        if kind.survey:
            reader.read_surveys([(kind, found) for found in objects])
        if kind.nodes:
            reader.read_nodes([found["id"] for found in objects])
        if objects:
            document[key] = sorted((_exported(kind, found, snapshot) for found in objects), key=lambda item: str(item["name"]))
    return document


def is_managed(found: Object) -> bool:
    """Objects that the platform itself brings."""
    return bool(found.get("managed") or found.get("managed_by_tower"))


def _named(kind: Kind) -> Iterable[str]:
    """The kinds whose names an export needs, where the objects show only ids."""
    yield from (association.kind for association in kind.associations if association.reading == "filter")
    if kind.api == "eda":
        yield from (target for reference in kind.references for target in reference.kinds if target != EDA_ORGANIZATIONS)
        yield EDA_ORGANIZATIONS


def _is_of(kind: Kind, found: Object, organization: str, snapshot: Snapshot) -> bool:
    own = [reference for reference in kind.references if reference.name == "organization"]
    if not organization or not own:
        return not organization or kind.path != "organizations" or found.get("name") == organization
    name = snapshot.name_of(kind, own[0], found)
    return name in ("", organization)


def _exported(kind: Kind, found: Object, snapshot: Snapshot) -> Object:
    item: Object = {"name": found[kind.name_field]}
    item |= _values(kind, found, snapshot)
    for association in kind.associations:
        shown = sorted(names_of(association, found, snapshot, kind).values())
        if association.reading == "embedded":
            shown = sorted(str(each.get("name")) for each in found.get(association.name) or [])
        if shown:
            item[association.name] = shown
    if survey := snapshot.surveys.get(found["id"]) if kind.survey else None:
        item["survey_spec"] = survey
    if nodes := snapshot.nodes.get(found["id"]) if kind.nodes else None:
        item[NODE.key] = _nodes(nodes, snapshot)
    if kind.key == ACTIVATIONS and (streams := _streams(found)):
        item["event_streams"] = streams
    return item


def _values(kind: Kind, found: Object, snapshot: Snapshot) -> Object:
    values = {each.name: from_api(each, found[each.api_name]) for each in kind.fields if each.api_name in found}
    values |= {reference.name: snapshot.name_of(kind, reference, found) for reference in kind.references}
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _nodes(nodes: list[Object], snapshot: Snapshot) -> list[Object]:
    names = {node["id"]: node["identifier"] for node in nodes}
    return [_node(node, names, snapshot) for node in nodes]


def _node(node: Object, names: dict[int, str], snapshot: Snapshot) -> Object:
    item: Object = {"identifier": node["identifier"], **_values(NODE, node, snapshot)}
    shown = (node.get("summary_fields") or {}).get("unified_job_template") or {}
    if shown.get("unified_job_type") == APPROVAL:
        item.pop("unified_job_template", None)
        item["approval_node"] = {name: shown[name] for name in ("name", "description", "timeout") if shown.get(name)}
    following = {edge: [names[other] for other in node.get(edge) or [] if other in names] for edge in EDGES}
    return item | {edge: others for edge, others in following.items() if others}


def _streams(found: Object) -> list[Any]:
    text = found.get("source_mappings") or ""
    mappings = yaml.safe_load(text) if isinstance(text, str) else text
    return [{"event_stream": each.get("event_stream_name"), "source_name": each.get("source_name")} for each in mappings or []]
