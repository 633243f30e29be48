# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the actions on repositories of a forge share: the forge that their arguments describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.base import Credentials, Forge, ForgeError
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.factory import forge_of


def forge_from(parameters: dict[str, Any]) -> Forge:
    """The repository on the forge."""
    file = parameters["forge_ca_cert"]
    try:
        ca = Path(file).read_text(encoding="utf-8") if file else ""
    except (OSError, UnicodeDecodeError):
        raise ForgeError(f"forge_ca_cert {file} cannot be read.") from None
    url = parameters["forge_url"]
    if not url.startswith(("https://", "http://")):
        raise ForgeError("forge_url must start with https://.")
    verify = parameters["forge_validate_certs"]
    return forge_of(parameters["forge"], Credentials(url, parameters["repository"], parameters["forge_token"], ca, verify))
