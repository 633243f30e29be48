# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of the actions that talk to an object store."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import run_identity
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import S3Error
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import Finding, require
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction


class S3Action(BaseAction):
    """Its actions are given the store that the shared arguments name."""

    SHARED: ClassVar[Spec] = S3
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (S3Error,)
    _host = ""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._host = str((task_vars or {}).get("inventory_hostname", ""))
        return super().run(tmp, task_vars)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return self.work(connect(parameters), parameters)

    @abstractmethod
    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        """What the action is for, and what is printed of it."""

    def identity(self) -> str:
        """The same in all tasks of this run for this host, and of no other. The parent of this worker is the run itself."""
        return run_identity(os.getppid(), self._host)

    @staticmethod
    def require(findings: list[Finding], parameters: dict[str, Any]) -> None:
        """NoConditions unless the proof of the store, or of the way to it, has passed. Whatever writes asks for it before."""
        require(findings, f"Bucket {parameters['bucket']} at {parameters['endpoint_url'] or 'AWS'}")

    @staticmethod
    def place(store: ObjectStore, parameters: dict[str, Any]) -> tuple[Place, Documents]:
        place = Place(parameters["namespace"], parameters["name"])
        return place, Documents(store, place.identity())
