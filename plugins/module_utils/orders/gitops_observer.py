# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Observes what Flux reports for an order that uses GitOps. It decides nothing and writes nothing."""

from __future__ import annotations

from ..gitops.conditions import unreachable
from ..gitops.observe import observe_conditions
from ..gitops.profiles.lock_file import ProfilesLock
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..providers.factory import ProviderFactory
from ..providers.model import ConditionState
from .conditions import was_applied
from .gitops import used_by
from .model import ClusterOrder
from .observe import cluster_ref, provider_type, recorded_cluster


def observe_gitops(kube: Kube, order: ClusterOrder) -> dict[str, ConditionState]:
    """The conditions of the order; Unknown where its cluster does not answer within the limits of one observation."""
    used = used_by(order)
    try:
        provider = ProviderFactory.for_cluster(provider_type(order), cluster_ref(kube, order))
        cluster = recorded_cluster(order)
        return observe_conditions(provider, cluster, used, profiles_of(order), is_applied=was_applied(order, cluster))
    except KubeError as error:
        return unreachable(used, str(error))


def profiles_of(order: ClusterOrder) -> ProfilesLock:
    """The lock file of the order's profiles; an empty one where it has none."""
    return ProfilesLock.from_json(order.profiles_lock)
