# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cluster API as a provider: a Cluster on the hub, with a machine deployment for each set of nodes. Imports lock, kube and common."""

from __future__ import annotations

from .provider import ClusterProvider

__all__ = ["ClusterProvider"]
