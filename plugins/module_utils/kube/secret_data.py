# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The values in the data of a Secret, as text. It reads no Secret, and no message has a value."""

from __future__ import annotations

import base64


class NotText(ValueError):
    """The value is not text. The message is a part of a sentence."""


def decode(encoded: str) -> str:
    """The text of a value, without the line break that a file ends with: `kubectl create secret --from-file` keeps it."""
    try:
        text = base64.b64decode(encoded).decode()
    except (ValueError, UnicodeDecodeError):
        raise NotText("is not text in UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")
