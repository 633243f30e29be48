# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every way to get a cluster, behind one interface. What is above asks `factory` for one and knows `base` and `model` only.

Imports lock, kube and common.
"""
