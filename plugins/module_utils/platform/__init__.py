# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ansible Automation Platform as code: controller and EDA configured from a document. Imports lock, kube and common."""
