"""The arguments of the event source of a fleet: defaults, mistakes in one message, and no secret in it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_settings import FleetSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import BadSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.record_archive import Retention
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.schedule import Weights


def test_defaults_hold_for_unset_variables_of_a_rulebook() -> None:
    settings = FleetSettings.from_arguments({"kubeconfig": "", "site_namespace": "", "settings": {}})
    assert (settings.site_namespace, settings.hub_timeout, settings.weights) == ("openfleet-system", timedelta(minutes=3), Weights())
    assert (settings.records.store, settings.records.retention) == ({}, Retention())


def test_own_argument_takes_precedence_over_settings() -> None:
    given = {"hub_timeout": 60, "settings": {"hub_timeout": 90, "records": {"bucket": "fleet", "max_age": "90d"}, "weights": {"spread": 5}}}
    settings = FleetSettings.from_arguments(given)
    assert settings.hub_timeout == timedelta(seconds=60)
    assert settings.records.store["bucket"] == "fleet"
    assert settings.records.retention == Retention(timedelta(days=90))
    assert settings.weights == Weights(spread=5)


def test_all_mistakes_are_one_message_without_a_secret() -> None:
    records = {"bucket": "fleet", "secret_key": "hunter2", "max_age": "soon", "interval": 0, "max_number": -1}
    given = {"hub_timeout": 0, "weights": {"region": -1}, "health": {"port": 70000}, "records": records, "hub_timeot": 5}
    with pytest.raises(BadSettings) as raised:
        FleetSettings.from_arguments(given)
    text = str(raised.value)
    assert "hunter2" not in text
    for part in (
        "hub_timeout must",
        "weights.region",
        "health.port",
        "records.max_age",
        "records.interval",
        "records.max_number",
        "hub_timeot",
    ):
        assert part in text
