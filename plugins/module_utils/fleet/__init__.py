# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fleets: clusters of tenants on several hubs, with quota and scheduling; all clusters of a hub, for the inventory.

Imports orders, gitops, registry, infrastructure, templates, providers, lock, s3, kube and common.
"""
