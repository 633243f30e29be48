# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a cluster has DNS records: a text on its working namespace, by which they are deleted also where the template cannot do it.

It names servers and Secrets of the site, and has no credentials.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from ..common.types import Object
from ..kube.client import Kube
from ..lock.fenced_writer import FencedWriter

BACKENDS = ("rfc2136", "route53")


def with_domain(text: str, domain: str, zone: str, options: Mapping[str, Any]) -> str:
    """The text with one more domain, which is in that zone of the server in the options of the task."""
    server = {name: options[name] for name in BACKENDS if options.get(name)}
    return json.dumps(domains_in(text) | {domain: {"zone": zone, **server}}, sort_keys=True)


def domains_in(text: str) -> dict[str, Object]:
    """The zone and the server of each domain; none where the text has another form."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {str(domain): server for domain, server in found.items() if isinstance(server, dict)} if isinstance(found, dict) else {}


def release_domains(kube: Kube, site_namespace: str, text: str, owner: str, former: Collection[str], writer: FencedWriter) -> None:
    """Delete the records that this owner has there. Those of others stay."""
    from .dns_backends import zone_of  # here, as most runs have no records
    from .dns_records import DnsRecords

    for domain, server in domains_in(text).items():
        zone = zone_of(kube, site_namespace, server["zone"], server)
        DnsRecords(zone, domain, owner, writer, former=former).release()
