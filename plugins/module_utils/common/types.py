# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Types that every package shares."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]  # a Kubernetes object, or a part of one, as JSON has it
