# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The zone that the options of a task describe, with the credentials of the site: a Secret in its namespace, out of tenants' reach."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..kube.client import Kube
from .errors import SiteMistake

if TYPE_CHECKING:
    from .dns_rfc2136 import Rfc2136Zone
    from .dns_route53 import Route53Zone


def zone_of(kube: Kube, site_namespace: str, zone: str, options: Mapping[str, Any]) -> Rfc2136Zone | Route53Zone:
    """The zone of that name, on the server in the option `rfc2136` or `route53`.

    The library of a backend is imported here: most runs have no use for it, and it takes a tenth of a second, a seventh of an order.
    """
    if settings := options.get("rfc2136"):
        from . import dns_rfc2136

        key = _credentials(kube, site_namespace, settings["secret"], dns_rfc2136.KEYS)
        return dns_rfc2136.Rfc2136Zone(settings["server"], settings["port"], zone, key)
    from . import dns_route53

    settings = options["route53"]
    credentials = _credentials(kube, site_namespace, settings["secret"], dns_route53.KEYS)
    return dns_route53.Route53Zone(dns_route53.route53_client(settings["endpoint_url"], credentials), settings["zone_id"])


def _credentials(kube: Kube, namespace: str, name: str | None, keys: Sequence[str]) -> dict[str, str]:
    """Those of the keys that the Secret has; none where the site names no Secret."""
    if not name:
        return {}
    found = kube.find("v1", "Secret", name, namespace)
    if found is None:
        raise SiteMistake(f"The Secret {name} with the credentials for DNS does not exist in the site's namespace {namespace}.", ["secret"])
    data = found.get("data") or {}
    return {key: base64.b64decode(data[key]).decode(errors="replace").strip() for key in keys if key in data}
