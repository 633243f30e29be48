"""Runs of the playbooks' steps in this process: the actions and the tasks of our templates, called as a playbook's tasks call them.

Ansible itself is not here: no hosts, no hooks, no tasks of other collections, no output, and nothing renews a lock, which lasts for an
hour instead. `Orders.play` is for those.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.openfleet.clusters.plugins.action import (
    cluster_order_adopt,
    cluster_order_finish,
    cluster_order_prepare,
    cluster_order_proposal,
    cluster_order_upgrade,
    cluster_profile_info,
    hub_preparation,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock, acquire
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunProcess
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import prepare
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates

ENTRIES = {"provision": "install", "post_install": "post_install", "delete": "delete"}
COLLECTION = "openfleet.clusters"
INSTALLED = Path(sys.prefix) / "collections"
HERE = INSTALLED / "ansible_collections" / COLLECTION.replace(".", "/")
_numbers = itertools.count(1)
# Ansible loads filters at their first use and never from two threads at once.
_templating = threading.Lock()

# Where collections are, for the run of this thread: Ansible has one list for the whole process.
_folders: ContextVar[Sequence[Path]] = ContextVar("folders", default=(INSTALLED,))


def _templates(_paths: Sequence[str]) -> Any:
    return find_templates([str(folder) for folder in _folders.get()])


class NoRenewer:
    """Stands for the process that renews the locks of a run: it starts none. The locks last longer than any test instead."""

    def __init__(self, _options: Mapping[str, Any], run: RunProcess, _seconds: float = 0, **_more: bool) -> None:
        self.run = run

    def __enter__(self) -> NoRenewer:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def keep(self, _lock: Lock) -> None:
        pass

    def confirm(self) -> None:
        pass


# What the actions ask Ansible's own process for: where collections are, whether a role can be read, and a process that
# renews locks.
for _module in (
    cluster_order_adopt,
    cluster_order_prepare,
    cluster_order_finish,
    cluster_order_proposal,
    cluster_order_upgrade,
    cluster_profile_info,
    hub_preparation,
):
    _module.AnsibleCollectionConfig = SimpleNamespace(collection_paths=[])  # type: ignore[attr-defined]
    _module.find_templates = _templates  # type: ignore[attr-defined]
cluster_order_prepare.RoleCheck = lambda _loader: SimpleNamespace(problem=lambda _role, _entry: None)  # type: ignore[attr-defined]
cluster_order_prepare.Renewer = NoRenewer  # type: ignore[attr-defined,misc,assignment]
prepare.acquire = functools.partial(acquire, duration=3600)  # type: ignore[assignment]


def act(module: str, arguments: Mapping[str, Any], *, check: bool = False, variables: Mapping[str, Any] | None = None) -> Object:
    """What the action of that name answers to a task with these arguments."""
    action = importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.action.{module}").ActionModule
    task = SimpleNamespace(args=dict(arguments), check_mode=check, diff=True, async_val=0, action=f"{COLLECTION}.{module}")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=""))
    answer: Object = action(task, connection, None, DataLoader(), None).run(task_vars=dict(variables or {}))
    return answer


class TaskFailed(Exception):
    """A task of a template has failed. `answer` is its result."""

    def __init__(self, task: str, answer: Object) -> None:
        super().__init__(f"{task}: {answer.get('msg')}")
        self.task = task
        self.answer = answer

    @property
    def failure(self) -> Object:
        """As the playbooks record it."""
        reason = {"reason": self.answer["reason"]} if "retryable" in self.answer else {}
        return {"task": self.task, "error": self.answer.get("msg"), **reason}


@dataclass
class InProcessRun:
    """One run of a step for some orders, over one connection, in three parts that a test may stop between.

    `arguments` are those of every action, `variables` what a site sets, and `controller` the one of the orders: `self` or `external`.
    `changed` counts the tasks that changed something.
    """

    step: str
    arguments: Object
    names: Sequence[str]
    folder: Path
    check: bool = False
    variables: Object = field(default_factory=dict)
    prepare_arguments: Object = field(default_factory=dict)
    controller: str = "self"
    orders: list[Object] = field(default_factory=list)
    skipped: list[Object] = field(default_factory=list)
    failures: dict[str, Object] = field(default_factory=dict)
    facts: dict[str, Object] = field(default_factory=dict)
    results: list[Object] = field(default_factory=list)
    changed: int = 0

    # The three parts

    def prepare(self) -> InProcessRun:
        token = _folders.set((self.folder / "collections", INSTALLED))
        try:
            chosen = {"orders": list(self.names)} if self.names else {}
            given = {"job_id": f"test-{os.getpid()}-{next(_numbers)}", **chosen, **self.prepare_arguments}
            answer = self._act("cluster_order_prepare", {"step": self.step, **given}, self.variables)
        finally:
            _folders.reset(token)
        if answer.get("failed"):
            self.results.append(answer)
        self.orders, self.skipped = answer.get("orders", []), answer.get("skipped_orders", [])
        return self

    def run_templates(self) -> InProcessRun:
        """The failure of one order's template ends on that order. After a failed hook its template does not run."""
        for order in self.orders:
            if _name(order) in self.failures:
                continue
            try:
                self._run_role(order["cluster_template_role"], ENTRIES[self.step], dict(order), self.facts.setdefault(_name(order), {}))
            except TaskFailed as failed:
                self.failures[_name(order)] = failed.failure
        return self

    def fail(self, name: str, task: str, error: str) -> InProcessRun:
        """Have a task of a hook before the template fail, for the order of this name."""
        failed = next(order for order in self.orders if order["cluster_order"]["metadata"]["name"] == name)
        self.failures[_name(failed)] = {"task": task, "error": error}
        return self

    def finish(self, wait: float = 0) -> InProcessRun:
        for order in self.orders:
            if failure := self.failures.get(_name(order)):
                self._finish([order], failure=failure)
        if left := [order for order in self.orders if _name(order) not in self.failures]:
            self._finish(left, wait_timeout=wait)
        return self

    def complete(self, wait: float = 0) -> InProcessRun:
        return self.run_templates().finish(wait)

    # What came of it

    @property
    def messages(self) -> str:
        """The messages of the run about what it skipped and what failed."""
        said = [order["message"] for order in self.skipped] + [failure["error"] for failure in self.failures.values()]
        return "\n".join([*said, *(result["msg"] for result in self.results if result.get("failed"))])

    @property
    def is_successful(self) -> bool:
        return not (self.failures or any(order["failed"] for order in self.skipped) or any(it.get("failed") for it in self.results))

    def successful(self) -> InProcessRun:
        assert self.is_successful, self.messages
        return self

    # How it is done

    def _act(self, module: str, arguments: Object, variables: Mapping[str, Any] | None = None, *, check: bool | None = None) -> Object:
        check = self.check if check is None else check
        connection = self.arguments | {"controller": self.controller} if module in _action_groups()["kubernetes"] else {}
        answer = act(module, connection | arguments, check=check, variables=variables)
        self.changed += bool(answer.get("changed")) and check == self.check
        return answer

    def _finish(self, orders: list[Object], **outcome: Any) -> None:
        reported = {name: facts["cluster_infrastructure"] for name, facts in self.facts.items() if "cluster_infrastructure" in facts}
        arguments = {"step": self.step, "orders": json.loads(json.dumps(orders)), "infrastructure": reported, **outcome}
        token = _folders.set((self.folder / "collections", INSTALLED))
        try:
            self.results.append(self._act("cluster_order_finish", arguments))
        finally:
            _folders.reset(token)

    def _run_role(self, role: str, entry: str, variables: Object, facts: Object) -> None:
        if not role:  # of an order that nothing was made for
            return
        folder = self._folder_of(role)
        own = {**_loaded(folder / "defaults/main.yml", {}), **self.variables, **_loaded(folder / "vars/main.yml", {})}
        self._run_file(folder / f"tasks/{entry}.yml", {**own, **variables}, facts)

    def _run_file(self, file: Path, variables: Object, facts: Object) -> None:
        for task in _loaded(file, []):
            self._run_task(task, variables, facts, file.parent)

    def _run_task(self, task: Object, variables: Object, facts: Object, folder: Path) -> None:
        """One task, with the keywords that the roles of this collection use: block, vars, when, loop, register, check_mode, failed_when."""
        scope = {**variables, **task.get("vars", {})}
        if not all(self._holds(each, scope | facts) for each in _listed(task.get("when", []))):
            return
        if "block" in task:
            for each in task["block"]:
                self._run_task(each, scope, facts, folder)
        elif "loop" in task:
            items = self._rendered(task["loop"], scope | facts)
            results = [self._answer(task, scope | {"item": item}, facts, folder) for item in items]
            self._keep(task, {"results": results}, facts)
        else:
            self._keep(task, self._answer(task, scope, facts, folder), facts)

    def _answer(self, task: Object, scope: Object, facts: Object, folder: Path) -> Object:
        """What the task does, once."""
        module = next(key for key in task if "." in key)
        arguments = self._rendered(task[module] or {}, scope | facts)
        if module == "ansible.builtin.set_fact":
            facts |= arguments
        elif module == "ansible.builtin.include_tasks":
            self._run_file(folder / arguments, scope, facts)
        elif module == "ansible.builtin.include_role":
            self._run_role(arguments["name"], arguments.get("tasks_from", "main"), scope, facts)
        else:
            assert module.startswith(COLLECTION), f"{module} needs a playbook"
            check = bool(self._rendered(task.get("check_mode", self.check), scope | facts | {"ansible_check_mode": self.check}))
            # The variables of an order are all in one, as the playbooks have them.
            answer = self._act(module.removeprefix(f"{COLLECTION}."), arguments, scope | {"cluster_variables": scope}, check=check)
            answer.setdefault("failed", False)
            failed = self._holds(task["failed_when"], scope | facts | {task["register"]: answer}) if "failed_when" in task else None
            if answer["failed"] if failed is None else failed:
                raise TaskFailed(task["name"], answer)
            return answer
        return {}

    @staticmethod
    def _keep(task: Object, answer: Object, facts: Object) -> None:
        if "register" in task:
            facts[task["register"]] = answer

    @staticmethod
    def _rendered(value: Any, variables: Object) -> Any:
        with _templating:
            return Templar(loader=DataLoader(), variables=dict(variables)).template(value)

    @staticmethod
    def _holds(condition: Any, variables: Object) -> bool:
        with _templating:
            return bool(Templar(loader=DataLoader(), variables=dict(variables)).evaluate_conditional(condition))

    def _folder_of(self, role: str) -> Path:
        namespace, collection, name = role.split(".")
        roots = (self.folder / "collections", INSTALLED)
        folders = (root / "ansible_collections" / namespace / collection / "roles" / name for root in roots)
        return next(folder for folder in folders if folder.is_dir())


@functools.cache
def _action_groups() -> Object:
    groups: Object = _loaded(HERE / "meta/runtime.yml", {})["action_groups"]
    return groups


def _loaded(file: Path, default: Any) -> Any:
    return DataLoader().load_from_file(str(file), trusted_as_template=True) if file.exists() else default


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _name(order: Object) -> str:
    metadata = order["cluster_order"]["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
