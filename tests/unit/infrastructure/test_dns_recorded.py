"""What a working namespace says about the DNS records of its cluster."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_recorded import domains_in, with_domain


def test_each_domain_has_its_zone_and_its_server_and_no_other_option() -> None:
    server = {"server": "192.0.2.53", "port": 53, "secret": "dns-key"}
    text = with_domain("", "a.example.com", "example.com", {"rfc2136": server, "route53": None, "records": {"api": []}})
    text = with_domain(text, "b.example.com", "example.com", {"route53": {"zone_id": "Z"}})
    assert domains_in(text) == {
        "a.example.com": {"zone": "example.com", "rfc2136": server},
        "b.example.com": {"zone": "example.com", "route53": {"zone_id": "Z"}},
    }
    assert with_domain(text, "b.example.com", "example.com", {"route53": {"zone_id": "Z"}}) == text


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"a": 1}', "null"])
def test_a_text_of_another_form_names_no_domain(text: str) -> None:
    assert domains_in(text) == {}
