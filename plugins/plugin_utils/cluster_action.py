# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of actions on one cluster: finds the cluster, acquires its lock and returns the changes."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import diff
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunProcess
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster, objects
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ClusterAction(ControllerAction):
    """Subclasses read `subject`, and change it inside of `self.changing(subject)`.

    In the tasks of templates and hooks, what a task leaves out is that of the order: the order itself, its provider, the lock that the run
    holds, and where the site has its objects. It is read from the variables of the host: as `module_defaults`, Ansible would render and
    copy it for each task, which takes longer than the task itself.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._of_run: Mapping[str, Any] = (task_vars or {}).get("cluster_variables") or {}
        if self._of_run:
            spec = self.SHARED | self.SPEC
            known = {name: value for name, value in self._of_run["cluster_arguments"].items() if name in spec}
            # An empty order stands for that of the run, which is not copied.
            self._task.args = known | {"cluster_order": {}} | self._task.args
        return super().run(tmp, task_vars)

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names = Names.of(parameters)
        if parameters["name"]:
            subject = TaskCluster.by_name(kube, names, parameters["name"], parameters["namespace"], parameters["provider"])
        else:
            order = ClusterOrder.from_object(parameters["cluster_order"] or self._of_run["cluster_order"], names)
            subject = TaskCluster.of_order(kube, order, parameters["provider"])
        return self.work_on(subject, parameters)

    @abstractmethod
    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        """Do the task and return its result."""

    def changing(self, subject: TaskCluster, parameters: dict[str, Any]) -> AbstractContextManager[Provider]:
        """The provider, with the lock of the task or else with the cluster's own lock.

        Ignores the lock of another cluster: it is the default for the tasks of a template, which can name others.
        """
        lock = Lock(**parameters["lock"]) if parameters["lock"] else None
        if lock and (lock.namespace, lock.order) != (subject.lock_namespace, subject.lock_name):
            lock = None
        run = RunProcess.of_worker()
        return subject.locked(lock, f"{subject.ref.name}-local-{run.pid}-{secrets.token_hex(4)}", self.check_mode, run)

    def change(self, subject: TaskCluster, parameters: dict[str, Any], work: Callable[[Provider, ObservedCluster], None]) -> dict[str, Any]:
        """Change an existing cluster and return the changes."""
        with self.changing(subject, parameters) as provider:
            work(provider, provider.status(subject.recorded))
            return self.result(provider)

    def result(self, provider: Provider) -> dict[str, Any]:
        changes = provider.changes
        return {"changed": any(change.changed for change in changes), "objects": objects(changes), "diff": diff(changes)}
