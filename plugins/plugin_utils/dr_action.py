# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of the actions of disaster recovery, which use the API server of this cluster, its peers, and the bucket."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DISASTER_RECOVERY, Spec, connection
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import State, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Modes
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import SECONDS, Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunEnded
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import S3Error
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action


class DrAction(S3Action):
    """Passes connections to this cluster and to the bucket to `recover`."""

    SHARED: ClassVar[Spec] = DISASTER_RECOVERY
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (KubeError, S3Error, RunEnded)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        verified = parameters["validate_certs"] is not False
        return self.work(connect(parameters | {"validate_certs": verified}), parameters)

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        return self.recover(Kube.connect(connection(parameters)), store, parameters)

    @abstractmethod
    def recover(self, kube: Kube, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        """Do the task and return its result."""

    def reconciler(self, kube: Kube, store: ObjectStore, parameters: dict[str, Any]) -> Reconciler:
        """The settings of this cluster are read each time: the mode can be changed on a running system."""
        namespace, identity = parameters["site_namespace"], self.identity()
        access = Modes(kube, namespace, store, identity).access()
        seconds = parameters.get("timeout") or SECONDS
        return Reconciler(kube, access, store, identity, seconds=seconds)

    @staticmethod
    def state(store: ObjectStore, workload: WorkloadRef) -> State:
        return StateStore(DocumentStore(store, workload.identity()), workload).read()
