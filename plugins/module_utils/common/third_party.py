# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Third-party libraries that a connection needs. A missing one is an error when a connection is created, not a traceback."""

from __future__ import annotations

try:
    import urllib3
    import yaml

    MISSING = ""
except ImportError as error:
    urllib3 = yaml = None  # type: ignore[assignment]
    MISSING = str(error.name)

__all__ = ["MISSING", "urllib3", "yaml"]
