# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ClusterRegistry: the clusters it names, how each is reached and its health. Imports kube and common."""
