# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster at OpenShift Cluster Manager: found, created, changed, upgraded, deleted and observed there.

A cluster is found by its id, and without one by its name, which is derived from its reference and the hub: a run that was killed after
it had requested the cluster finds it again, and never requests two.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property

from ...common.timestamps import format_time
from ...common.types import Object
from ...kube.errors import Conflict, Invalid, NotFound
from ...lock.fenced_writer import holds
from ..base import NoSuchCluster, NotReadyYet, Provider, ProviderError
from ..model import ClusterRequest, ObservedCluster
from .account import require_recorded_account
from .api import segment
from .connection import Connection
from .fenced_api import FencedApi
from .model import OWNER, STATES, cluster_name, observed_cluster, owner_of, properties
from .pools import MachinePools
from .secret import AccessSecret

# The service accepts no upgrade that would start in less than five minutes.
UPGRADE_NOTICE = timedelta(minutes=10)


class ServiceCluster:
    """The cluster of a provider at the service. An argument `cluster` is the cluster as the service returned it."""

    def __init__(self, provider: Provider, connection: Connection) -> None:
        self._provider = provider
        self._ref = provider.ref
        self._connection = connection

    @cached_property
    def owner(self) -> str:
        """The hub is a part of it: two hubs of one organization may have the same namespace and name."""
        return owner_of(self._ref.kube.cluster_id(), self._ref.namespace, self._ref.name)

    @cached_property
    def name(self) -> str:
        return cluster_name(self.owner)

    @property
    def service(self) -> FencedApi:
        return FencedApi(self._connection.api, self._provider, self.name)

    def pools(self, cluster: Object) -> MachinePools:
        return MachinePools(self.service, path_of(cluster), self._ref.class_label)

    # Read

    def find(self, observed: ObservedCluster) -> Object | None:
        """The cluster; None where there is none. ProviderError for one that may not be that of the reference."""
        api, found = self._connection.api, None
        if observed.internal_id:
            found = api.find(f"clusters/{segment(observed.internal_id)}", f"get cluster {self.name}")
        if found is None:
            named = api.list_all("clusters", f"find cluster {self.name}", f"name = '{self.name}'")
            found = named[0] if named else None
            if found and (found.get("properties") or {}).get(OWNER) != self.owner:
                raise ProviderError(
                    f"OpenShift Cluster Manager has a cluster {self.name} that was not created for {self.owner}; it is skipped. "
                    "Rename or delete it there."
                )
        if found is None:
            require_recorded_account(api, self._connection.secret, self.name)
        return found

    def existing(self, observed: ObservedCluster) -> Object:
        """The cluster; NoSuchCluster where there is none."""
        found = self.find(observed)
        if found is None:
            raise NoSuchCluster(f"OpenShift Cluster Manager has no cluster {self.name} for {self.owner}.")
        return found

    def usable(self, observed: ObservedCluster) -> Object:
        """The cluster, if its state allows changes."""
        found = self.existing(observed)
        state = str(found.get("state"))
        if STATES.get(state) in ("failed", "deprovisioning"):
            raise NoSuchCluster(f"The cluster {self.name} is in the state {state}, in which it can only be deleted.")
        if STATES.get(state) != "ready":
            raise NotReadyYet(f"The cluster {self.name} is in the state {state}; try again when it is ready.")
        return found

    def require_secret(self) -> None:
        """The Secret is written before the request, so a cluster without one is that of an earlier order of the same name.

        It is read again: another run may have written it after this one began.
        """
        secret = self._connection.secret
        if not secret.exists and not AccessSecret(self._ref).exists:
            raise ProviderError(
                f"OpenShift Cluster Manager has a cluster {self.name} of {self.owner}, but the Secret {secret.reference} of that "
                "cluster does not exist: it may belong to an earlier order of this name. Delete the cluster there; or, to adopt it, "
                "create the Secret with an offline token as token."
            )

    def after_changes(self, cluster: Object) -> Object:
        """The cluster, read again; in check mode nothing has changed."""
        return cluster if self._ref.check_mode else self._connection.api.get(path_of(cluster), f"get cluster {self.name}")

    def observed(self, cluster: Object) -> ObservedCluster:
        """The cluster in the words of the provider interface, with its machine pools."""
        try:
            pools = self.pools(cluster).all() if "id" in cluster else []
        except NotFound:
            # The cluster was deleted meanwhile, as the next status will show.
            pools = []
        return observed_cluster(cluster, pools, self._ref.class_label, self._connection.secret.requested_nodes)

    # Written

    def create(self, body: Object) -> Object:
        try:
            created = self.service.post("clusters", "Cluster", self.name, body, dry_run=self._ref.check_mode)
        except (Conflict, Invalid):
            # Another run may have been faster: the service accepts a name only once.
            found = self.find(ObservedCluster())
            if found is None:
                raise
            return found
        # The id in the response to a dry run finds nothing.
        return {"state": "pending", **created} if not self._ref.check_mode else {**body, "state": "pending"}

    def set_properties(self, cluster: Object, request: ClusterRequest) -> None:
        """Set the properties of the request, beside the others that the cluster has."""
        present, wanted = cluster.get("properties") or {}, properties(self.owner, request)
        if not holds(present, wanted):
            self.service.patch(path_of(cluster), "Cluster", self.name, cluster, {"properties": {**present, **wanted}})

    def upgrade(self, cluster: Object, version: str) -> None:
        """Schedule the upgrade, unless it is scheduled."""
        path = f"{path_of(cluster)}/upgrade_policies"
        policies = self._connection.api.list_all(path, f"list upgrades of {self.name}")
        if not any(policy.get("version") == version for policy in policies):
            start = format_time(datetime.now(UTC) + UPGRADE_NOTICE)
            body = {"schedule_type": "manual", "upgrade_type": "OSD", "version": version, "next_run": start}
            self.service.post(path, "UpgradePolicy", version, body)

    def delete(self, cluster: Object) -> None:
        """Request the deletion, unless it has begun."""
        if cluster.get("state") != "uninstalling":
            self.service.delete(path_of(cluster), "Cluster", self.name, cluster, dry_run=self._ref.check_mode)


def path_of(cluster: Object) -> str:
    return f"clusters/{segment(str(cluster['id']))}"
