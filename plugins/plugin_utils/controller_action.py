# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of the actions that use the API server of the hub."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec, connection
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import TemplateError
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction


class ControllerAction(BaseAction):
    """Passes a connection to the cluster that the shared arguments describe to `work`."""

    SHARED: ClassVar[Spec] = KUBERNETES | ORDERS
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (KubeError, TemplateError)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return self.work(Kube.connect(connection(parameters)), parameters)

    @abstractmethod
    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        """Do the task and return its result."""
