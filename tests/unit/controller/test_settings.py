"""The arguments of the event source: unset variables of a rulebook are no values, and every mistake is in one message without secrets."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import BadSettings, Settings, Webhook


def test_unset_variables_of_a_rulebook_leave_the_defaults() -> None:
    given = {"kubeconfig": "", "batch_size": "", "webhook": {"host": "", "port": "", "token": ""}}
    assert Settings.from_arguments(given) == Settings.from_arguments({}) == Settings()


@pytest.mark.parametrize("kubeconfig", ["/a", "~/a", "/a:~/b:", {"clusters": []}])
def test_a_kubeconfig_is_one_that_runs_find_too(kubeconfig: Any) -> None:
    assert Settings.from_arguments({"kubeconfig": kubeconfig}).connection == {"kubeconfig": kubeconfig}


def test_arguments_come_from_one_dictionary_and_those_given_by_themselves_take_precedence() -> None:
    settings = {"max_in_flight": 3, "batch_size": 5, "webhook": {"port": 0, "token": "a"}}
    given = {"batch_size": 7, "poll": "", "settings": settings, "webhook": {"token": "b", "hmac_secret": ""}}
    webhook = Webhook(port=0, token="b")  # noqa: S106 - of a test
    assert Settings.from_arguments(given) == Settings(max_in_flight=3, batch_size=7, webhook=webhook)


def test_texts_become_what_they_mean() -> None:
    given = {"controller": "external", "max_in_flight": "3", "kubeconfig": "/a", "webhook": {"port": "0", "insecure": "yes"}}
    settings = Settings.from_arguments(given)
    assert settings.names.external_controller and settings.max_in_flight == 3 and settings.connection == {"kubeconfig": "/a"}
    assert settings.webhook == Webhook(port=0, insecure=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batch_size": 0, "poll": -1}, "batch_size must be at least 1; poll must be at least 1"),
        ({"start_timeout": 300, "pending_timeout": 299}, "pending_timeout must be at least start_timeout, 300, not 299"),
        ({"controller": "both"}, 'controller must be one of "self", "external"'),
        ({"batchsize": 3}, "batchsize is not known to this event source.*did you mean batch_size"),
        ({"kubeconfig": "/a:b"}, "kubeconfig must be an absolute path"),
        ({"webhook": {"port": 70000}}, "between 0 and 65535"),
        ({"webhook": {"rate_limit": 0}}, "rate_limit must be at least 1"),
        ({"webhook": {"keyfile": "/k"}}, "certfile, which is missing"),
        ({"webhook": {"cafile": "/c"}}, "needs webhook.certfile"),
        ({"webhook": {"cafile": "/c", "certfile": "/s"}}, "webhook.cafile needs webhook.client_names"),
        ({"webhook": {"client_names": ["a"]}}, "need webhook.cafile"),
        ({"webhook": {"health_port": 5000}}, "health_port must be another port"),
        ({"webhook": {"health_port": -1}}, "health_port must be between 0 and 65535"),
        ({"webhook": {"max_connections_per_client": 0}}, "max_connections_per_client must be at least 1"),
        ({"webhook": "a text"}, "webhook must be"),
        ({"settings": "a text"}, "settings must be a dictionary"),
        ({"settings": {"batch_size": 0, "webhook": "a text"}, "webhook": {"token": ""}}, "webhook must be.*batch_size must be at least 1"),
        ({"settings": {"batchsize": 3}}, "batchsize is not known to this event source"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        Settings.from_arguments(given)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "hub.example.com"])  # noqa: S104 - to be refused
def test_an_address_that_others_reach_needs_a_proof_or_a_word(host: str) -> None:
    with pytest.raises(BadSettings, match="insecure: true"):
        Settings.from_arguments({"webhook": {"host": host}})
    for proof in ({"token": "a"}, {"hmac_secret": "a"}, {"cafile": "/c", "certfile": "/s", "client_names": ["a"]}, {"insecure": True}):
        assert Settings.from_arguments({"webhook": {"host": host} | proof}).webhook.host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_an_address_of_this_machine_alone_needs_none(host: str) -> None:
    assert Settings.from_arguments({"webhook": {"host": host}}).webhook.host == host


def test_secrets_are_not_shown() -> None:
    given = {"api_key": "hidden", "webhook": {"token": "hidden", "hmac_secret": "hidden"}}
    assert "hidden" not in repr(Settings.from_arguments(given))
    with pytest.raises(BadSettings) as refused:
        Settings.from_arguments({"webhook": {"token": {"hidden": 1}}})
    assert "hidden" not in str(refused.value)
