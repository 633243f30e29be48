# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ClusterOrders: model, observation, status, next action, and the steps of a run.

Imports gitops, infrastructure, templates, providers, lock, kube and common.
"""
