# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Probes the API server of a cluster with one small request. Refused credentials are never reported as unreachable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..common.third_party import urllib3
from ..kube.client import Kube
from ..kube.errors import BadCredentials, Forbidden, KubeError, NotFound, Unauthorized
from .health import HEALTHY, UNAUTHORIZED, UNREACHABLE

# Returns the health of a cluster and the reason for it.
Probe = Callable[[], tuple[str, str]]

# One request without retries: the next probe is the retry, and a server that hangs must not delay a report beyond its
# interval.
TIMEOUT_SECONDS = 5.0


def api_server_probe(options: Mapping[str, Any]) -> Probe:
    """A probe of the API server that `options` describe.

    Each call reads the files in the options again, since they may change.
    """

    def probe() -> tuple[str, str]:
        try:
            Kube.connect(options, urllib3.Timeout(total=TIMEOUT_SECONDS), tries=1).get("v1", "Namespace", "default")
        except (Forbidden, NotFound):
            # The API server answers and accepts the credentials. Nothing else is probed.
            return HEALTHY, ""
        except (BadCredentials, Unauthorized) as error:
            return UNAUTHORIZED, str(error)
        except KubeError as error:
            return UNREACHABLE, str(error)
        return HEALTHY, ""

    return probe
