# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Profiles of a cluster: Helm charts of the site's repositories, in layers, resolved to exact versions before an order is accepted.

Imports infrastructure, templates, providers, kube and common.
"""
