# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All clusters of a hub, ordered and registered, for the inventory.

Imports orders, registry, templates, providers, kube and common.
"""
