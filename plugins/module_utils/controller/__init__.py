# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event sources of orders, fleets, hubs and leases: informers, work queues, webhook server, leader election, in-flight runs.

Imports fleet, dr, orders, gitops, registry, infrastructure, templates, providers, coordination, lock, s3, kube and common.
"""
