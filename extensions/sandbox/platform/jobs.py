"""Jobs: what a launch makes of a template and its prompts, their states, and workflows that go from node to node."""

from __future__ import annotations

import datetime
import re
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ....plugins.module_utils.common.types import Object
from .exchange import Refused, Request, Response
from .kinds import Kind
from .store import Link, Store, now
from .surveys import Surveys, defaults, missing_answers

FINISHED = ("successful", "failed", "error", "canceled")
# By field of a launch: the prompt that lets it through.
ASKED = {
    "extra_vars": "variables",
    "limit": "limit",
    "labels": "labels",
    "inventory": "inventory",
    "credentials": "credential",
    "job_type": "job_type",
    "job_tags": "tags",
    "skip_tags": "skip_tags",
    "scm_branch": "scm_branch",
    "verbosity": "verbosity",
    "diff_mode": "diff_mode",
    "forks": "forks",
    "timeout": "timeout",
    "execution_environment": "execution_environment",
    "instance_groups": "instance_groups",
    "job_slice_count": "job_slice_count",
}


@dataclass(frozen=True)
class Run:
    """What a job runs: a playbook of its project with variables, a limit and check mode, its output in `log`. `host` is the platform."""

    host: str
    job: int
    environment: dict[str, str]
    playbook: str
    extra_vars: Object
    limit: str
    check: bool
    log: Path


Runner = Callable[[Run], subprocess.Popen[bytes]]


@dataclass
class Launch:
    """A launch, for tests: the template, what the client sent, what was ignored of it, and the job that it made."""

    template: str
    workflow: bool
    sent: Object
    ignored: Object
    job: int


@dataclass
class Jobs:
    """Starts jobs. Without a `runner` each succeeds at once. `lock` is that of all requests."""

    store: Store
    surveys: Surveys
    lock: threading.RLock
    folder: Path | None = None
    runner: Runner | None = None
    host: str = ""
    launches: list[Launch] = field(default_factory=list)
    _processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    # Launch

    def launch(self, kind: Kind, template: Object, request: Request) -> tuple[Kind, Object, Object]:
        """The job of a launch and the fields that were ignored. 400 where an answer of the survey is missing."""
        accepted, ignored = self._prompted(kind, template, request.fields)
        job = self._start(kind, template, accepted)
        self.launches.append(Launch(template["name"], kind.type == "workflow_job_template", request.fields, ignored, job[1]["id"]))
        return *job, ignored

    def _prompted(self, kind: Kind, template: Object, given: Object) -> tuple[Object, Object]:
        accepted: Object = {}
        ignored: Object = {}
        variables = _mapping(given.get("extra_vars") or {})
        survey = self.surveys.of(kind, template) if template["survey_enabled"] else {}
        if missing := missing_answers(survey, variables):
            raise Refused(400, {"variables_needed_to_start": [f"'{name}' value missing" for name in missing]})
        asked = [question["variable"] for question in survey.get("spec", [])]
        for name, value in given.items():
            if name == "extra_vars" and not template["ask_variables_on_launch"]:
                accepted[name] = {key: variables[key] for key in variables if key in asked}
                if left := {key: variables[key] for key in variables if key not in asked}:
                    ignored[name] = left
            elif name in ASKED and template.get(f"ask_{ASKED[name]}_on_launch"):
                accepted[name] = variables if name == "extra_vars" else value
            else:
                ignored[name] = value
        accepted["extra_vars"] = {**_mapping(template["extra_vars"]), **defaults(survey), **accepted.get("extra_vars", {})}
        inventory = accepted.get("inventory", template["inventory"])
        if kind.type == "job_template" and inventory is None:
            raise Refused(400, {"inventory": ["Job Template 'inventory' is missing or undefined."]})
        return accepted, ignored

    def _start(self, kind: Kind, template: Object, accepted: Object) -> tuple[Kind, Object]:
        job_kind = self.store.kinds["workflow_jobs" if kind.type == "workflow_job_template" else "jobs"]
        shared = {field.name: template[field.name] for field in job_kind.fields if field.name in template and not field.read_only}
        values = shared | {name: value for name, value in accepted.items() if job_kind.field(name)}
        values = {name: "" if value is None and name in ("limit", "scm_branch") else value for name, value in values.items()}
        job = self.store.create(job_kind, values, {"organization": template["organization"], kind.type: template["id"]})
        for label in accepted.get("labels", []):
            self.store.links[Link(job_kind.collection, job["id"], "labels")].append(label)
        template |= {"status": "running", "last_job_run": now()}
        if job_kind.type == "workflow_job":
            _WorkflowRun(self, template, job, accepted).advance()
        else:
            self._use_credentials(template, job, accepted)
            self._run(job_kind, job, accepted["extra_vars"], lambda: None)
        return job_kind, job

    def _use_credentials(self, template: Object, job: Object, accepted: Object) -> None:
        own = self.store.links.get(Link("job_templates", template["id"], "credentials"), [])
        self.store.links[Link("jobs", job["id"], "credentials")] = list(accepted.get("credentials", own))

    def update(self, kind: Kind, row: Object) -> tuple[Kind, Object]:
        """The update of a project or an inventory source, which succeeds at once."""
        job_kind = self.store.kinds["project_updates" if kind.type == "project" else "inventory_updates"]
        job = self.store.create(job_kind, {"name": row["name"]}, {kind.type: row["id"]})
        self._finish(job_kind, job, "successful")
        if kind.type == "project":
            row["scm_revision"] = "0" * 40
        return job_kind, job

    # Run

    def _run(self, kind: Kind, job: Object, extra_vars: Object, then: Callable[[], None]) -> None:
        if not self.runner or not self.folder:
            self._finish(kind, job, "successful")
            then()
            return
        injected = self._injected(kind, job)
        variables = {**extra_vars, "awx_job_id": job["id"], "awx_job_template_name": job["name"], **injected.get("extra_vars", {})}
        run = Run(
            self.host,
            job["id"],
            injected.get("env", {}),
            job["playbook"],
            variables,
            job["limit"],
            job["job_type"] == "check",
            self.log(job),
        )
        process = self._processes[job["id"]] = self.runner(run)
        job |= {"status": "running", "started": now()}
        thread = threading.Thread(target=self._wait, args=(kind, job, process, then), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _injected(self, kind: Kind, job: Object) -> Object:
        """What the credentials of a job put into its environment and its variables."""
        found: Object = {}
        for _kind, credential in self.store.linked(kind, job, "credentials"):
            injectors = self.store.rows["credential_types"][credential["credential_type"]]["injectors"]
            for where in ("env", "extra_vars"):
                values = {name: _filled(text, credential["inputs"]) for name, text in injectors.get(where, {}).items()}
                found.setdefault(where, {}).update(values)
        return found

    def _wait(self, kind: Kind, job: Object, process: subprocess.Popen[bytes], then: Callable[[], None]) -> None:
        code = process.wait()
        with self.lock:
            self._finish(kind, job, "canceled" if job["canceled_on"] else "failed" if code else "successful")
            then()

    def _finish(self, kind: Kind, job: Object, status: str) -> None:
        time = now()
        job |= {"status": status, "failed": status != "successful", "started": job["started"] or time, "finished": time}
        job |= {"event_processing_finished": True, "elapsed": _seconds(job["started"], time)}
        owner = next(field for field in kind.fields if field.to and field.read_only)
        if found := self.store.find(owner.to, job[owner.name]):
            _kind, template = found
            template |= {"status": status, "last_job_run": time, "last_job_failed": status != "successful", "modified": time}

    def log(self, job: Object) -> Path:
        if not self.folder:
            raise Refused(404, {"detail": "This stand-in keeps no output."})
        return self.folder / f"job-{job['id']}.log"

    def output(self, job: Object) -> str:
        return self.log(job).read_text(encoding="utf-8", errors="replace") if self.folder and self.log(job).exists() else ""

    def cancel(self, kind: Kind, job: Object) -> Response:
        if job["status"] in FINISHED:
            raise Refused(405, {"detail": 'Method "POST" not allowed.'})
        job["canceled_on"] = now()
        if process := self._processes.get(job["id"]):
            process.terminate()
        else:
            self._finish(kind, job, "canceled")
        return Response(202)

    def end(self) -> None:
        """Kill what still runs, and wait for it."""
        for process in self._processes.values():
            process.kill()
        for thread in self._threads:
            thread.join()

    def start_of_node(self, template: tuple[Kind, Object], overrides: Object, then: Callable[[], None]) -> tuple[Kind, Object]:
        """The job of a workflow's node. What the node or the workflow overrides counts only where the template asks for it."""
        kind, row = template
        if kind.type == "project":
            started = self.update(kind, row)
            then()
            return started
        accepted, _ignored = self._prompted(kind, row, overrides)
        job_kind = self.store.kinds["jobs"]
        values = {field.name: row[field.name] for field in job_kind.fields if field.name in row and not field.read_only}
        values |= {name: value for name, value in accepted.items() if job_kind.field(name) and value is not None}
        fixed = {"organization": row["organization"], "job_template": row["id"], "launch_type": "workflow"}
        job = self.store.create(job_kind, values, fixed)
        self._use_credentials(row, job, accepted)
        self._run(job_kind, job, accepted["extra_vars"], then)
        return job_kind, job

    def finish_workflow(self, job: Object, status: str) -> None:
        self._finish(self.store.kinds["workflow_jobs"], job, status)


class _WorkflowRun:
    """One run of a workflow: a node starts when all its parents ended and one of them, or the start, leads to it."""

    def __init__(self, jobs: Jobs, template: Object, job: Object, accepted: Object) -> None:
        self._jobs, self._job, self._accepted = jobs, job, accepted
        store = jobs.store
        self._nodes = {row["id"]: row for _kind, row in store.children(store.kinds["workflow_job_templates"], template, "workflow_nodes")}
        self._edges = {
            (number, outcome): store.links.get(Link("workflow_job_template_nodes", number, f"{outcome}_nodes"), [])
            for number in self._nodes
            for outcome in ("success", "failure", "always")
        }
        self._started: dict[int, Object] = {}
        self._skipped: set[int] = set()
        self._is_advancing = False
        job |= {"status": "running", "started": now()}

    def advance(self) -> None:
        if self._is_advancing or self._job["status"] in FINISHED:
            return
        self._is_advancing = True
        while ready := [number for number in self._nodes if self._is_next(number)]:
            for number in ready:
                if self._is_reached(number) and self._nodes[number]["unified_job_template"] and not self._job["canceled_on"]:
                    self._start(number)
                else:
                    self._skipped.add(number)
        self._is_advancing = False
        if all(self._has_ended(number) for number in self._nodes):
            self._jobs.finish_workflow(self._job, self._outcome())

    def _start(self, number: int) -> None:
        node, store = self._nodes[number], self._jobs.store
        template = store.find("unified_job_templates", node["unified_job_template"])
        if template is None:
            self._skipped.add(number)
            return
        overrides = {name: node[name] for name in ASKED if node.get(name) is not None}
        overrides |= {name: value for name, value in self._accepted.items() if name != "extra_vars"}
        overrides["extra_vars"] = {**node["extra_data"], **self._accepted["extra_vars"]}
        kind = store.kinds["workflow_job_nodes"]
        given = {"workflow_job": self._job["id"], "unified_job_template": node["unified_job_template"], "identifier": node["identifier"]}
        shown = store.create(kind, given)
        self._started[number] = {"status": "pending"}
        _job_kind, started = self._jobs.start_of_node(template, overrides, self.advance)
        self._started[number] = started
        shown["job"] = started["id"]

    def _parents(self, number: int) -> list[tuple[int, str]]:
        return [edge for edge, children in self._edges.items() if number in children]

    def _has_ended(self, number: int) -> bool:
        return number in self._skipped or (number in self._started and self._started[number]["status"] in FINISHED)

    def _is_next(self, number: int) -> bool:
        known = number in self._started or number in self._skipped
        return not known and all(self._has_ended(parent) for parent, _outcome in self._parents(number))

    def _is_reached(self, number: int) -> bool:
        parents = self._parents(number)
        return not parents or any(self._leads(parent, outcome) for parent, outcome in parents)

    def _leads(self, parent: int, outcome: str) -> bool:
        if parent in self._skipped:
            return False
        succeeded = self._started[parent]["status"] == "successful"
        return outcome == "always" or succeeded == (outcome == "success")

    def _outcome(self) -> str:
        """A failure counts unless a path of the workflow handles it."""
        if self._job["canceled_on"]:
            return "canceled"
        failed = [number for number, job in self._started.items() if job["status"] != "successful"]
        handled = all(self._edges[number, "failure"] or self._edges[number, "always"] for number in failed)
        return "successful" if handled else "failed"


def _mapping(value: Any) -> Object:
    """Variables, which clients send as an object or as text."""
    if isinstance(value, str):
        value = yaml.safe_load(value) or {}
    if not isinstance(value, Mapping):
        raise Refused(400, {"extra_vars": ["Input type `str` is not a dictionary"]})
    return dict(value)


def _filled(template: str, inputs: Object) -> str:
    """An injector with the inputs of a credential: the plain form of a template, without filters."""
    return re.sub(r"\{\{ *(\w+) *\}\}", lambda name: str(inputs.get(name[1], "")), template)


def _seconds(start: str, end: str) -> float:
    began, ended = (datetime.datetime.fromisoformat(moment) for moment in (start, end))
    return round((ended - began).total_seconds(), 3)
