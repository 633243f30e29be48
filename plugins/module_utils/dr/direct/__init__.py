# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Disaster recovery without a hub: requests go to the API servers of the registered clusters.

Imports registry, coordination, s3, kube and common.
"""
