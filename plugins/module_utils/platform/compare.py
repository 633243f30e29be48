# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An item of a document compared with the object of the platform: what differs, and what to write. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.third_party import yaml
from ..common.types import Object
from .document import Item, Named
from .kinds import CREDENTIAL_TYPES, EDA_CREDENTIAL_TYPES
from .ledger import Ledger
from .model import Association, Field, Kind, Reference
from .resolve import Target
from .snapshot import Snapshot, embedded, names_in, reference_id, shown_list
from .values import ENCRYPTED, HIDDEN, NOTIFICATION_SECRETS, OTHER, default_inputs, equal, from_api, same, secret_inputs, to_api

Difference = tuple[str, Any, Any]  # a field, before and after
Targets = Mapping[str, Mapping[Named, Target]]


@dataclass(frozen=True)
class ListChange:
    """Objects to add to an association, and to remove from it."""

    association: Association
    add: tuple[Target, ...]
    remove: tuple[int, ...]


@dataclass
class Comparison:
    """What differs. Values in a body are those of the API; a Target stands for its id, a list of them for their ids."""

    fields: list[Difference] = field(default_factory=list)
    body: Object = field(default_factory=dict)
    deferred: Object = field(default_factory=dict)
    lists: list[ListChange] = field(default_factory=list)
    # All secrets of the item, whether they differ or not, by their path.
    secrets: dict[str, Any] = field(default_factory=dict)


def compare(item: Item, current: Object | None, targets: Targets, snapshot: Snapshot, ledger: Ledger) -> Comparison:
    """The differences; without a current object, everything that the item has."""
    result = Comparison()
    compare_fields(item.kind, item.values, current, result)
    if item.kind.secrets in item.values:
        _compare_secrets(item, current, targets, snapshot, ledger, result)
    compare_references(item.kind, item.values, current, targets, snapshot, result)
    for association in item.kind.associations:
        if association.name in item.values:
            _compare_list(item, association, current, targets, snapshot, result)
    return result


def compare_fields(kind: Kind, values: Mapping[str, Any], current: Object | None, result: Comparison) -> None:
    for each in kind.fields:
        if each.name not in values or each.name == kind.secrets:
            continue
        wanted = values[each.name]
        before = None if current is None else current.get(each.api_name)
        if current is None and wanted is None:
            continue
        if current is None or not _unchanged(kind, each, wanted, before):
            result.body[each.api_name] = to_api(each, wanted)
            result.fields.append((each.name, None if current is None else from_api(each, before), wanted))


def _unchanged(kind: Kind, each: Field, wanted: Any, before: Any) -> bool:
    if each.name == "inputs" and kind.key in (CREDENTIAL_TYPES, EDA_CREDENTIAL_TYPES):
        return equal(_with_defaults(wanted), _with_defaults(before))
    return same(each, wanted, before)


def _with_defaults(inputs: Any) -> Any:
    """The inputs of a credential type, with what the API adds to each of them."""
    if not isinstance(inputs, dict):
        return inputs
    fields = [{"type": "string"} | each for each in inputs.get("fields") or []]
    return {"fields": fields, "required": inputs.get("required") or []}


# References


def compare_references(
    kind: Kind, values: Mapping[str, Any], current: Object | None, targets: Targets, snapshot: Snapshot, result: Comparison
) -> None:
    for reference in kind.references:
        named = values.get(reference.name)
        if reference.lookup or not isinstance(named, Named):
            continue
        target = targets.get(reference.name, {}).get(named)
        identity = reference_id(reference, current) if current else None
        if current is not None and _refers_already(kind, reference, named, target, identity, current):
            continue
        if current is None and not named.name:
            continue
        before = None if current is None else snapshot.name_of(kind, reference, current)
        (result.deferred if reference.deferred else result.body)[reference.api_name] = target
        result.fields.append((reference.name, before, named.name or None))


def _refers_already(kind: Kind, reference: Reference, named: Named, target: Target | None, identity: int | None, current: Object) -> bool:
    if not named.name:
        return identity is None
    if target is None:  # its list was not read: the object itself shows the name
        return True
    if target.id is None:
        return False
    if len(reference.kinds) > 1:
        # Ids of launched objects are unique among all of them.
        shown = embedded(kind, reference, current)
        return target.id == identity or target.id == shown.get("id")
    return target.id == identity


# Lists


def _compare_list(
    item: Item, association: Association, current: Object | None, targets: Targets, snapshot: Snapshot, result: Comparison
) -> None:
    wanted = item.values[association.name]
    found = targets.get(association.name, {})
    names = [named.name for named in wanted]
    if association.reading == "embedded":
        _compare_embedded(association, names, wanted, current, found, result)
        return
    present, known = ids_of(item.kind, association, current, snapshot), names_of(association, current, snapshot, item.kind)
    if len(found) < len(wanted):
        # The list of the kind was not read: the object shows every name that the document has.
        add: list[Target] = []
        remove = [identity for identity, name in known.items() if name not in names]
    else:
        add = [found[named] for named in wanted if found[named].id is None or found[named].id not in present]
        kept = {target.id for target in found.values()}
        remove = [identity for identity in present if identity not in kept]
    if add or remove:
        result.lists.append(ListChange(association, tuple(add), tuple(remove)))
        before = None if current is None else sorted(known.values())
        result.fields.append((association.name, before, sorted(names)))


def _compare_embedded(
    association: Association,
    names: list[str],
    wanted: Iterable[Named],
    current: Object | None,
    found: Mapping[Named, Target],
    result: Comparison,
) -> None:
    """A list that is written with the object."""
    before = names_in(association, current) if current else []
    if current is None and not names:
        return
    if current is None or sorted(before) != sorted(names):
        result.body[association.name] = [found[named] for named in wanted if named in found]
        result.fields.append((association.name, None if current is None else sorted(before), sorted(names)))


def ids_of(kind: Kind, association: Association, current: Object | None, snapshot: Snapshot) -> list[int]:
    if current is None:
        return []
    read = snapshot.lists.get((kind.key, association.name), {}).get(current["id"])
    if read is not None:
        return sorted(read)
    return [each["id"] for each in shown_list(association, current)] if association.reading == "summary" else []


def names_of(association: Association, current: Object | None, snapshot: Snapshot, kind: Kind) -> dict[int, str]:
    shown = {each["id"]: str(each.get("name")) for each in shown_list(association, current or {})}
    objects = snapshot.objects.get(association.kind, {})
    return {
        identity: shown.get(identity) or str(objects.get(identity, {}).get("name", identity))
        for identity in ids_of(kind, association, current, snapshot)
    }


# Secrets


def _compare_secrets(item: Item, current: Object | None, targets: Targets, snapshot: Snapshot, ledger: Ledger, result: Comparison) -> None:
    """A field that has secrets in it is written as a whole."""
    name = item.kind.secrets
    wanted, present = item.values[name] or {}, (current or {}).get(name) or {}
    description = credential_type(targets, snapshot)
    secret = set(NOTIFICATION_SECRETS) if name != "inputs" else secret_inputs(description)
    differences: list[Difference] = []
    for key, value in wanted.items():
        path, hide = f"{name}.{key}", secret is None or key in secret or present.get(key) == ENCRYPTED
        if hide:
            result.secrets[path] = value
        if value == ENCRYPTED and current is not None:
            continue
        if present.get(key) == ENCRYPTED:
            if not (current and ledger.knows(item.kind.key, current["id"], path, value)):
                differences.append((path, HIDDEN, OTHER))
        elif current is None or not equal(value, present.get(key)):
            before = present.get(key)
            differences.append((path, HIDDEN if hide and before else before, HIDDEN if hide else value))
    defaults = default_inputs(description)
    for key, value in present.items():
        if key not in wanted and value not in (None, "", False, [], {}) and value != defaults.get(key):
            differences.append((f"{name}.{key}", HIDDEN if value == ENCRYPTED or secret is None or key in secret else value, None))
    if differences or current is None:
        result.body[name] = dict(wanted)
        result.fields += differences


def credential_type(targets: Targets, snapshot: Snapshot) -> Object | None:
    """The type of a credential, which says what is secret: of the platform, or of the document."""
    for target in targets.get("credential_type", {}).values():
        if target.id is not None:
            return snapshot.objects.get(target.kind, {}).get(target.id)
        if target.item is not None:
            return dict(target.item.values)
    return None


# Activations


def compare_streams(item: Item, current: Object | None) -> Difference | None:
    """The event streams of an activation: their names, and those of the sources that they take the place of."""
    wanted = [_mapping(stream["event_stream"], stream.get("source_name")) for stream in item.event_streams or ()]
    if current is None:
        return ("event_streams", None, wanted) if wanted else None
    text = current.get("source_mappings") or ""
    mappings = yaml.safe_load(text) if isinstance(text, str) and text else text or []
    by_index = any("source_index" in stream for stream in item.event_streams or ())
    before = [_mapping(each.get("event_stream_name"), None if by_index else each.get("source_name")) for each in mappings]
    return None if sorted(map(str, wanted)) == sorted(map(str, before)) else ("event_streams", before, wanted)


def _mapping(stream: Any, source: Any) -> Object:
    return {"event_stream": stream} | ({"source_name": source} if source else {})
