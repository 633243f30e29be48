# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How the API server of a cluster is, asked by one small request. Refused credentials are never called unreachable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..common.third_party import urllib3
from ..kube.client import Kube
from ..kube.errors import BadCredentials, Forbidden, KubeError, NotFound, Unauthorized
from .health import HEALTHY, UNAUTHORIZED, UNREACHABLE

# One request of at most so long: the next probe is the second try, and a report must not be overdue because of a server that hangs.
SECONDS = 5.0


def probe_of(options: Mapping[str, Any]) -> Callable[[], tuple[str, str]]:
    """Ask the API server that `options` describe how it is, and why. Each call reads the options' files anew, which may have changed."""

    def probe() -> tuple[str, str]:
        try:
            Kube.connect(options, urllib3.Timeout(total=SECONDS), tries=1).get("v1", "Namespace", "default")
        except (Forbidden, NotFound):
            # It knows us, and answers: that is all that was asked.
            return HEALTHY, ""
        except (BadCredentials, Unauthorized) as error:
            return UNAUTHORIZED, str(error)
        except KubeError as error:
            return UNREACHABLE, str(error)
        return HEALTHY, ""

    return probe
