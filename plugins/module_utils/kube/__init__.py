# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A client for Kubernetes API servers: requests, kubeconfigs, errors. Knows no kind of this collection. Imports common."""
