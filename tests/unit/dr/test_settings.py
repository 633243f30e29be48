"""The settings of disaster recovery, read from a ConfigMap."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.settings import DrSettings, InvalidDrSettings, parse_settings


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        (None, DrSettings()),
        ({}, DrSettings("direct")),
        ({"dr_mode": "acm"}, DrSettings("acm")),
        ({"dr_mode": "direct\n", "compare": "true", "acm_hub_secret": "hub"}, DrSettings("direct", True, "peers", "hub")),
        ({"ops_namespace": "ops"}, DrSettings(ops_namespace="ops")),
        ({"registry": "sites", "timeout": "2.5", "compare": ""}, DrSettings(registry="sites", timeout=2.5)),
    ],
)
def test_settings(data: dict[str, str] | None, settings: DrSettings) -> None:
    assert parse_settings({"data": data}, "openfleet-system") == settings


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"dr_mode": "hub"}, "dr_mode is 'hub': set direct or acm"),
        ({"mode": "acm"}, "mode is not a setting (did you mean dr_mode?)"),
        ({"compare": "yes"}, "compare is 'yes': set true or false"),
        ({"timeout": "soon"}, "timeout is not between 1 and 300 seconds"),
        ({"timeout": "nan"}, "timeout is not between 1 and 300 seconds"),
        ({"timeout": "0.1"}, "timeout is not between 1 and 300 seconds"),
    ],
)
def test_mistake_names_the_key_and_the_remedy(data: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidDrSettings, match="ConfigMap openfleet-system/dr-settings cannot be used") as error:
        parse_settings({"data": data}, "openfleet-system")
    assert message in str(error.value)


def test_all_mistakes_are_one_message() -> None:
    with pytest.raises(InvalidDrSettings) as error:
        parse_settings({"data": {"dr_mode": "hub", "compare": "yes", "other": "1"}}, "x")
    assert str(error.value).count(";") == 2
