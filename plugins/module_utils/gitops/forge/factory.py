# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The forges by name. A new kind needs its file and one line here."""

from __future__ import annotations

from .base import Credentials, Forge
from .gitea import Gitea
from .github import GitHub
from .gitlab import GitLab

FORGES: dict[str, type[Forge]] = {"gitea": Gitea, "forgejo": Gitea, "github": GitHub, "gitlab": GitLab}


def forge_of(kind: str, credentials: Credentials) -> Forge:
    return FORGES[kind](credentials)
