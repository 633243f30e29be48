# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The secrets of a site, for orders that bring none: one Secret in its namespace. No message here has a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..common.argument_values import clip
from ..common.text import did_you_mean
from ..kube.secret_data import NotText, decode

SECRET = "site-secrets"  # noqa: S105 the name of the object
KEYS = ("pull_secret", "ssh_public_key")
PUBLIC_KEY = re.compile(r"(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}( [^\r\n]*)?")


@dataclass(frozen=True)
class SiteSecrets:
    """What templates use where an order has no value; empty where the site has none."""

    pull_secret: str = field(default="", repr=False)
    ssh_public_key: str = field(default="", repr=False)


def parse_secrets(data: Mapping[str, str], problems: list[str]) -> SiteSecrets:
    """The secrets in the data of the Secret. What is wrong is left out, and added to `problems` with its key."""
    problems.extend(f"{clip(key)} is not known{did_you_mean(key, KEYS)}" for key in data if key not in KEYS)
    texts = {key: _text(key, data[key], problems) for key in KEYS if key in data}
    if texts.get("pull_secret") and not _is_pull_secret(texts["pull_secret"]):
        problems.append("pull_secret must be a JSON object with auths, as the registry's owner provides it")
        del texts["pull_secret"]
    if texts.get("ssh_public_key") and not PUBLIC_KEY.fullmatch(texts["ssh_public_key"]):
        problems.append("ssh_public_key must be one line of an OpenSSH public key file")
        del texts["ssh_public_key"]
    return SiteSecrets(**texts)


def _text(key: str, encoded: str, problems: list[str]) -> str:
    try:
        return decode(encoded)
    except NotText as error:
        problems.append(f"{key} {error}")
        return ""


def _is_pull_secret(text: str) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("auths"), dict)
