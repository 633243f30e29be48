# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""HyperShift as a provider: the control plane is a HostedCluster on the hub, and each set of nodes a NodePool. Imports kube and common."""

from __future__ import annotations

from .provider import ClusterProvider

__all__ = ["ClusterProvider"]
