"""The arguments of the event source fleet_agent: all mistakes in one message, without a secret, and nothing of the environment for home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_connections import connect_home
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_settings import AgentSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_source import collection_version
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import BadSettings
from ansible_rulebook.util import substitute_variables

ROOT = Path(__file__).parents[3]
HOME = {"host": "https://home.example.com", "api_key": "t0ken"}


def test_defaults() -> None:
    given = AgentSettings.from_arguments({"hub": "east", "home": HOME, "kubeconfig": "", "api_group": ""})
    assert (given.hub, given.heartbeat, given.report, given.names.site_namespace) == ("east", 10, 20, "openfleet-system")
    assert "t0ken" not in repr(given)
    assert (Path(given.collections_paths[0]) / "ansible_collections" / "openfleet" / "clusters" / "galaxy.yml").exists()


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ({}, ["hub is required", "home is required"]),
        ({"hub": "East!", "home": HOME}, ["hub must be the name of a Hub"]),
        ({"hub": "e" * 60, "home": HOME}, ["hub must be the name of a Hub"]),
        ({"hub": "east", "home": {"context": "a"}}, ["home needs kubeconfig"]),
        ({"hub": "east", "home": {"token": "t0ken"}}, ["home.token is not known"]),
        ({"hub": "east", "home": HOME, "heartbeat": 21, "report": 0}, ["heartbeat must be between 1 and 20", "report must be at least 1"]),
        ({"hub": "east", "home": HOME, "allowed_addresses": ["::/x"]}, ["::/x"]),
    ],
)
def test_mistakes_are_one_message(arguments: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(BadSettings) as caught:
        AgentSettings.from_arguments(arguments)
    assert all(each in str(caught.value) for each in messages)
    assert "t0ken" not in str(caught.value)


def test_home_takes_nothing_from_the_environment_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_AUTH_HOST", "https://hub.example.com")
    monkeypatch.setenv("K8S_AUTH_API_KEY", "of-the-hub")
    target = connect_home(AgentSettings("east", HOME)).target
    assert (target.server, target.token) == ("https://home.example.com", "t0ken")


def test_rulebook_passes_the_variables_of_a_site() -> None:
    (ruleset,) = yaml.safe_load((ROOT / "rulebooks" / "fleet_agent.yml").read_text(encoding="utf-8"))
    (source,) = ruleset["sources"]
    arguments = substitute_variables(source["openfleet.clusters.fleet_agent"], {"fleet_hub": "east", "hub_kubeconfig": "/etc/hub"})
    given = AgentSettings.from_arguments(arguments)
    assert (given.hub, given.home, given.connection) == (
        "east",
        {"kubeconfig": "/etc/openfleet-home/kubeconfig"},
        {"kubeconfig": "/etc/hub"},
    )


def test_version_is_that_of_the_collection() -> None:
    assert collection_version() == yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
