# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Disaster recovery of workloads between clusters. Imports registry, coordination, s3, kube and common."""
