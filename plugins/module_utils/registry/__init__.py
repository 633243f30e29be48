# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ClusterRegistry: registered clusters, how to reach each of them, and their health. Imports kube and common."""
