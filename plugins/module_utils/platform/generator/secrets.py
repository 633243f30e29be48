# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The secrets of the platform's objects, which no file of the site has: what is missing is named by its variable."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from .site import InvalidSiteFile, Site


@dataclass(frozen=True)
class Secrets:
    """Tokens of the platform for its configuration and for launches, the engine's kubeconfig, and the token of webhooks."""

    token: str = field(default="", repr=False)
    engine_token: str = field(default="", repr=False)
    engine_kubeconfig: str = field(default="", repr=False)
    webhook_token: str = field(default="", repr=False)


def require(secrets: Secrets, site: Site) -> None:
    """Every secret that the site's objects need; InvalidSiteFile names the variables of those that are missing."""
    needed = [each.name for each in fields(secrets) if site.webhooks or each.name != "webhook_token"]
    missing = [f"platform_{name}" for name in needed if not getattr(secrets, name)]
    if missing:
        raise InvalidSiteFile([f"the variable {name} is not set" for name in missing])
