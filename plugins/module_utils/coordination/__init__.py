# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Leader, state, decision and cluster health that clusters share in an S3 bucket. Imports lock, s3, kube and common."""
