# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a site provides for the clusters of its tenants: its settings, secrets and hosts. Imports templates, lock, kube and common."""
