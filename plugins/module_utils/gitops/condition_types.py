# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The types of the conditions of an order that uses GitOps, in their order."""

from __future__ import annotations

INSTALLED, SOURCE_READY, SYNCED, PROFILES_READY = "GitOpsInstalled", "GitOpsSourceReady", "GitOpsSynced", "ProfilesReady"
TYPES = (INSTALLED, SOURCE_READY, SYNCED, PROFILES_READY)
MISSING = "Missing"  # the reason where an object of Flux does not exist
