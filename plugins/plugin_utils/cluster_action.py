# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of actions on one cluster: which one it is, under which lock it is changed, and how changes are told."""

from __future__ import annotations

import os
import secrets
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import diff
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster, objects, shown
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ClusterAction(ControllerAction):
    """Subclasses work on `subject`; they change it inside `self.changing(subject)`."""

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names = Names(parameters["api_group"])
        if parameters["name"]:
            subject = TaskCluster.by_name(kube, names, parameters["name"], parameters["namespace"], parameters["provider"])
        else:
            order = ClusterOrder.from_object(parameters["cluster_order"], names.group)
            subject = TaskCluster.of_order(kube, order, parameters["provider"])
        return self.work_on(subject, parameters)

    @abstractmethod
    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        """What the action is for, and what is printed of it."""

    def changing(self, subject: TaskCluster, parameters: dict[str, Any]) -> AbstractContextManager[Provider]:
        """The provider under the lock that was given, or else under the cluster's own.

        A lock of another cluster does not count: it is the default in the tasks of a template, which may name other clusters.
        """
        lock = Lock(**parameters["lock"]) if parameters["lock"] else None
        if lock and (lock.namespace, lock.order) != (subject.lock_namespace, subject.lock_name):
            lock = None
        return subject.locked(lock, f"{subject.ref.name}-local-{os.getppid()}-{secrets.token_hex(4)}", self.check_mode)

    def change(self, subject: TaskCluster, parameters: dict[str, Any], work: Callable[[Provider, ObservedCluster], None]) -> dict[str, Any]:
        """Do one change to a cluster that is there, and tell of it."""
        with self.changing(subject, parameters) as provider:
            work(provider, provider.status(subject.recorded))
            return self.told(provider)

    def told(self, provider: Provider) -> dict[str, Any]:
        changes = provider.changes
        return {"changed": any(change.changed for change in changes), "objects": objects(changes), "diff": diff(changes)}

    def told_of(self, subject: TaskCluster, provider: Provider, spec: ObservedCluster) -> dict[str, Any]:
        return self.told(provider) | {"cluster": shown(subject, spec)}
