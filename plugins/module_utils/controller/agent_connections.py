# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The connections of an agent: to its hub, and to the home cluster. Nothing is sent."""

from __future__ import annotations

from ..common.third_party import urllib3
from ..kube.client import Kube
from ..kube.config import target
from .agent_settings import AgentSettings

CONNECT_SECONDS, READ_SECONDS = 5.0, 15.0
TIMES = {"connect": CONNECT_SECONDS, "read": READ_SECONDS}


def connect_home(settings: AgentSettings) -> Kube:
    """The home cluster. Nothing of the environment is used for it, which is for the hub. Tries are the callers': they have backoff."""
    return Kube(target(dict(settings.home), {}), urllib3.Timeout(**TIMES), tries=1)


def connect_hub(settings: AgentSettings) -> Kube:
    return Kube.connect(settings.connection, urllib3.Timeout(**TIMES), tries=2)
