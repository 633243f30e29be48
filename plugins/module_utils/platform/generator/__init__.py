# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The document of Automation Platform's objects, generated from the collection and a site file. Imports lock and common."""
