# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Disaster recovery through an ACM hub, with the objects of Open Cluster Management and the names that Ramen gives them.

Imports s3, kube and common.
"""
