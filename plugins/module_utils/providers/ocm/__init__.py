# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""OpenShift Cluster Manager as a provider: its API, clusters, machine pools, identity providers and resources.

Imports lock, kube and common.
"""

from __future__ import annotations

from .provider import ClusterProvider

__all__ = ["ClusterProvider"]
