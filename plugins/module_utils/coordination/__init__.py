# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What clusters agree on in an S3 bucket: leader, state, decision, health. Imports s3, kube and common."""
