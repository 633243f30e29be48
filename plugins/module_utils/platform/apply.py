# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A plan applied to the platform: groups one after the other, the objects of a group at most four at a time.

It knows nothing of kinds but what is special: organizations of a gateway, rulebooks and activations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..common.third_party import yaml
from ..common.types import Object
from ..kube.errors import AnswerLost, KubeError, NotFound
from .activations import Activations
from .client import PlatformApi
from .compare import ListChange
from .document import Item
from .errors import NotApplied
from .idempotent import associate, once
from .kinds import ACTIVATIONS, EDA_ORGANIZATIONS, EDA_PROJECTS, EVENT_STREAMS, KINDS, ORGANIZATIONS, PROJECTS, RULEBOOKS
from .model import Kind
from .node_writer import NodeWriter
from .plan import Change, Plan, RoleChange
from .project_imports import wait_for_imports, wait_until_imported
from .resolve import Target
from .roles import role_id

POLL_SECONDS = 1.0
GATEWAY_FIELDS = ("name", "description")  # of an organization; the controller has the others


@dataclass
class Outcome:
    """What was done, also where the run failed in the middle."""

    written: list[tuple[Change, Object]] = field(default_factory=list)  # with the object as the platform has it
    deleted: list[Change] = field(default_factory=list)
    granted: list[tuple[str, RoleChange]] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    uncertain: list[Change] = field(default_factory=list)  # the answer is lost: the next run finds out
    error: KubeError | None = None


class Applier:
    def __init__(self, api: PlatformApi, plan: Plan) -> None:
        self._api = api
        self._plan = plan
        self._activations = Activations(api)
        self._nodes = NodeWriter(api, self._filled)
        self._ids: dict[int, int] = {key: current["id"] for key, (_item, current) in plan.matched.items()}
        self.outcome = Outcome()

    def apply(self) -> Outcome:
        """Apply the plan until a request fails; the outcome has the error."""
        try:
            projects = [(item.kind, current) for item, current in self._plan.matched.values() if item.kind.key in (PROJECTS, EDA_PROJECTS)]
            wait_for_imports(self._api, projects)
            for group in self._plan.groups:
                self._all(self._write, group)
            self._all(self._write_deferred, [change for group in self._plan.groups for change in group])
            self._all(self._change_role, self._plan.roles)
            for group in self._plan.deletions:
                self._all(self._delete, group)
        except KubeError as error:
            self.outcome.error = error
        return self.outcome

    def _all(self, work: Callable[[Any], None], items: Iterable[Any]) -> None:
        failed = [result for result in self._api.in_parallel(work, items) if isinstance(result, KubeError)]
        if failed:
            done = len(self.outcome.written) + len(self.outcome.deleted)
            raise NotApplied(
                f"{failed[0]} {done} objects were written before; run it again after fixing this, and it continues.",
                retryable=failed[0].retryable,
            ) from failed[0]

    # Objects

    def _write(self, change: Change) -> None:
        try:
            current = self._create(change) if change.action == "create" else self._update(change)
        except AnswerLost:
            self.outcome.uncertain.append(change)
            raise
        self._ids[id(change.item)] = current["id"]
        # Recorded at once: what follows may fail, and the object is there.
        position = len(self.outcome.written)
        self.outcome.written.append((change, current))
        for each in change.compared.lists:
            if not each.association.deferred:
                self._write_list(change, each)
        if change.nodes:
            self._nodes.write(change.nodes, current["id"], change.called)
        if change.survey is not None:
            current = self._write_survey(change, current)
        wait_until_imported(self._api, change, current)
        if change.kind.key == ACTIVATIONS and change.action == "create" and current.get("is_enabled", True):
            self._activations.started(current["id"], change.name)
        self._record(position, change, current)

    def _record(self, position: int, change: Change, current: Object) -> None:
        """Other threads add to the list meanwhile, so the search starts at its position."""
        for index in range(position, len(self.outcome.written)):
            if self.outcome.written[index][0] is change:
                self.outcome.written[index] = (change, current)

    def _create(self, change: Change) -> Object:
        kind, body = change.kind, self._body(change)
        body[kind.name_field] = change.name
        if kind.key == ORGANIZATIONS and self._api.behind_gateway:
            return self._create_organization(change, body)
        return self._post(kind, body, f"create {change.called}")

    def _update(self, change: Change) -> Object:
        body, path = self._body(change), f"{change.kind.path}/{change.id}"
        if not body:
            return change.current
        if change.kind.key == ACTIVATIONS:
            self._activations.change(change.current, body, change.name)
            return change.current
        if change.kind.key == ORGANIZATIONS and self._api.behind_gateway and "description" in body:
            self._api.gateway(
                "PATCH",
                f"organizations/{self._gateway_id(change.name)}",
                f"change {change.called}",
                {"description": body.pop("description")},
            )
            if not body:
                return change.current
        return change.current | self._api.patch(change.kind.api, path, f"change {change.called}", body)

    def _body(self, change: Change) -> Object:
        body = {name: self._filled(value) for name, value in change.compared.body.items()}
        if change.kind.key == ACTIVATIONS:
            # The API takes the project from the rulebook.
            body.pop("project_id", None)
            if change.streams and change.item:
                rulebook = body.get("rulebook_id") or change.current.get("rulebook_id")
                body["source_mappings"] = self._mappings(change.item, int(rulebook or 0))
            if change.action == "create":
                body.setdefault("is_enabled", True)
        return body

    def _filled(self, value: Any) -> Any:
        if isinstance(value, Target):
            return self._id(value)
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        return value

    def _id(self, target: Target) -> int:
        if target.id is not None:
            return target.id
        if target.kind == EDA_ORGANIZATIONS:
            return self._named("eda", "organizations", target.name, {})
        if target.kind == RULEBOOKS:
            return self._named("eda", "rulebooks", target.name, {"project_id": self._ids[id(target.item)]})
        return self._ids[id(target.item)]

    def _named(self, api: Any, path: str, name: str, query: Object) -> int:
        """The id of an object that the platform itself makes, a moment after another one."""
        what = f"look up {name} in {path}"
        for attempt in range(5):
            for found in self._api.list_all(api, path, what, {"name": name, **query}):
                if found.get("name") == name:
                    return int(found["id"])
            if attempt < 4:
                time.sleep(POLL_SECONDS)
        raise NotFound(f"{what}: the platform does not have it; check the name, and that the project has it.")

    def _post(self, kind: Kind, body: Object, what: str) -> Object:
        return once(lambda: self._api.post(kind.api, kind.path, what, body), lambda: self._find_created(kind, body, what))

    def _find_created(self, kind: Kind, body: Object, what: str) -> Object | None:
        references = [reference.api_name for reference in kind.references if body.get(reference.api_name)]
        for found in self._api.list_all(kind.api, kind.path, f"{what}: look it up", {kind.name_field: body[kind.name_field]}):
            values = [found.get(name) if name in found else (found.get(name.removesuffix("_id")) or {}).get("id") for name in references]
            if found.get(kind.name_field) == body[kind.name_field] and values == [body[name] for name in references]:
                return found
        return None

    # Organizations of a gateway

    def _create_organization(self, change: Change, body: Object) -> Object:
        own = {name: body.pop(name) for name in GATEWAY_FIELDS if name in body}
        what = f"create {change.called}"

        def find_created() -> Object | None:
            found = self._api.gateway("GET", "organizations", what, query={"name": change.name}).get("results") or []
            return next((each for each in found if each.get("name") == change.name), None)

        once(lambda: dict(self._api.gateway("POST", "organizations", what, own)), find_created)
        identity = self._named("controller", "organizations", change.name, {})
        path = f"organizations/{identity}"
        return self._api.patch("controller", path, what, body) if body else self._api.get("controller", path, what)

    def _gateway_id(self, name: str) -> int:
        found = self._api.gateway("GET", "organizations", f"look up organization {name}", query={"name": name}).get("results") or []
        for each in found:
            if each.get("name") == name:
                return int(each["id"])
        raise NotFound(f"look up organization {name}: the gateway does not have it.")

    # Lists and surveys

    def _write_deferred(self, change: Change) -> None:
        identity = self._ids[id(change.item)]
        if change.compared.deferred:
            body = {name: self._filled(value) for name, value in change.compared.deferred.items()}
            self._api.patch(change.kind.api, f"{change.kind.path}/{identity}", f"change {change.called}", body)
        for each in change.compared.lists:
            if each.association.deferred:
                self._write_list(change, each)

    def _write_list(self, change: Change, each: ListChange) -> None:
        path = f"{change.kind.path}/{self._ids[id(change.item)]}/{each.association.related_name}"
        for identity in each.remove:
            associate(self._api, path, identity, change.called, remove=True)
        for target in each.add:
            associate(self._api, path, self._id(target), change.called)

    def _write_survey(self, change: Change, current: Object) -> Object:
        path, what = f"{change.kind.path}/{current['id']}", f"write the survey of {change.called}"
        if change.survey:
            survey = {"name": "", "description": "", **change.survey}
            self._api.post("controller", f"{path}/survey_spec", what, survey, repeatable=True)
        else:
            self._api.delete("controller", f"{path}/survey_spec", what)
        # Its time of modification tells later runs that nothing has changed.
        return self._api.get("controller", path, f"read {change.called}")

    # Activations

    def _mappings(self, item: Item, rulebook: int) -> str:
        """The event streams of an activation, in the place of sources of its rulebook."""
        what = f"read the sources of the rulebook of {item.called}"
        sources = self._api.list_all("eda", f"rulebooks/{rulebook}/sources", what)
        streams = {found["name"]: found["id"] for found in self._api.list_all("eda", KINDS[EVENT_STREAMS].path, "list event streams")}
        mappings = []
        for stream in item.event_streams or ():
            name, index = stream.get("source_name"), stream.get("source_index")
            named = [source for at, source in enumerate(sources) if source.get("name") == name or (name is None and at == index)]
            if not named:
                known = ", ".join(str(source.get("name")) for source in sources)
                raise NotFound(f"{what}: it has no source {name if name is not None else index}; its sources are {known}.")
            mapping = {"source_name": named[0]["name"], "rulebook_hash": named[0].get("rulebook_hash")}
            mappings.append(mapping | {"event_stream_id": streams[stream["event_stream"]], "event_stream_name": stream["event_stream"]})
        return str(yaml.safe_dump(mappings)) if mappings else ""

    # Roles and deletions

    def _change_role(self, change: RoleChange) -> None:
        identity = change.id
        if identity is None and change.target is not None:
            kind = KINDS[change.target.kind]
            current = self._api.get("controller", f"{kind.path}/{self._id(change.target)}", f"read {kind.title} {change.target.name}")
            identity = role_id(current, change.role)
        if identity is None:
            raise NotFound(f"{change.action} {change.called}: the object has no such role.")
        remove = change.action == "revoke"
        associate(self._api, f"{change.principal}/roles", identity, change.called, remove=remove)
        if remove:
            self.outcome.revoked.append(f"{identity}/{change.principal}")
        else:
            self.outcome.granted.append((f"{identity}/{change.principal}", change))

    def _delete(self, change: Change) -> None:
        what = f"delete {change.called}"
        if change.kind.key == ORGANIZATIONS and self._api.behind_gateway:
            self._api.gateway("DELETE", f"organizations/{self._gateway_id(change.name)}", what)
        elif change.kind.key == ACTIVATIONS:
            self._activations.delete(int(change.id or 0), change.name)
        else:
            self._api.delete(change.kind.api, f"{change.kind.path}/{change.id}", what)
        self.outcome.deleted.append(change)
