# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GitOps in clusters: Flux, profiles in layers, and orders as files in a repository.

Imports infrastructure, templates, providers, kube and common.
"""
