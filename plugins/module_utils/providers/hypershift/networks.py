# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What HyperShift refuses of a cluster's networks although its CRD accepts it. Pure; it sends nothing."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from ...kube.errors import Invalid

CIDRS = ("pod_network_cidr", "service_network_cidr")


def require_one_family(settings: Mapping[str, Any]) -> None:
    """Invalid where the networks are partly IPv4 and partly IPv6. What is no network the API server refuses."""
    try:
        versions = {ipaddress.ip_network(settings[name], strict=False).version for name in CIDRS}
    except ValueError:
        return
    if len(versions) > 1:
        values = " and ".join(f"{name} {settings[name]}" for name in CIDRS)
        raise Invalid(f"{values} are of different IP versions: use IPv4 for both, or IPv6 for both.", list(CIDRS))
