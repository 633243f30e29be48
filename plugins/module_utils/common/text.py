# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Text within the limits of the Kubernetes API, and text that names what a user may have meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

REASON_LIMIT = 1024
COMPARED = 60  # characters of an unknown name that are compared with the known ones


def shortened(text: str, limit: int) -> str:
    """Cut a text to its limit. Half of a surrogate pair, from undecodable output, is replaced: JSON cannot hold it."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def as_reason(text: str) -> str:
    """Turn a text into a condition's reason, which is one word."""
    word = re.sub(r"[^A-Za-z0-9_,:]", "", text).lstrip("0123456789_,:")
    return word[:REASON_LIMIT].rstrip(",:") or "Error"


def did_you_mean(name: str, names: Iterable[str], full: Mapping[str, str] | None = None) -> str:
    """Suggest the nearest of these names, as the end of a sentence. `full` has what to write for a name instead."""
    nearest = difflib.get_close_matches(name[:COMPARED], names, n=3, cutoff=0.6)
    suggested = dict.fromkeys((full or {}).get(found, found) for found in nearest)
    return f" (did you mean {' or '.join(suggested)}?)" if suggested else ""
