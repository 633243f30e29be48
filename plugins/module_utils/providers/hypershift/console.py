# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The address of a cluster's web console, as its console operator publishes it. No object on the hub has it."""

from __future__ import annotations

import re

from ...kube.client import Kube
from ...kube.connections import Limits

NAMESPACE, CONFIG_MAP, KEY = "openshift-config-managed", "console-public", "consoleURL"
# One small object. A cluster that does not answer must not delay the run of its order.
LIMITS = Limits(response_bytes=2**20, total_bytes=2**20, total_seconds=10.0)
URL_LIMIT = 2048
ADDRESS = re.compile(r"https://[a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?(:[0-9]{1,5})?")


def console_url(kube: Kube) -> str:
    """The address; empty where the cluster publishes none, or something else: its tenant can write it."""
    published = kube.find("v1", "ConfigMap", CONFIG_MAP, NAMESPACE) or {}
    text = str((published.get("data") or {}).get(KEY) or "").rstrip("/")
    return text if ADDRESS.fullmatch(text) and len(text) <= URL_LIMIT else ""
