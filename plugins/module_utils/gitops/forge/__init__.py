# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Forges: files, branches and pull requests of a repository, by the API of the forge that has it. One file a kind of forge.

Imports no other package.
"""
