# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""dnspython, which only sites with DNS records need. A missing one is an error when records are written, not a traceback."""

from __future__ import annotations

from ..kube.errors import BadCredentials

try:
    import dns
    import dns.exception
    import dns.message
    import dns.name
    import dns.nameserver
    import dns.query
    import dns.rcode
    import dns.rdata
    import dns.rdatatype
    import dns.resolver
    import dns.tsig
    import dns.update

    IS_MISSING = False
except ImportError:
    dns = None  # type: ignore[assignment]
    IS_MISSING = True

__all__ = ["dns", "require_dnspython"]


def require_dnspython() -> None:
    if IS_MISSING:
        raise BadCredentials(
            "The Python library dnspython is missing where Ansible runs: install what requirements.txt of the collection names."
        )
