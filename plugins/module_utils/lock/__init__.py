# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lock of an order: its Lease, the process that renews it, and writes that carry its token. Imports kube and common."""
