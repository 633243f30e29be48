# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cluster templates: the catalogue of installed ones, their metadata and parameters. Imports providers and common."""
