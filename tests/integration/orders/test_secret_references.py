"""Secrets that an order refers to: read in its own namespace, with one message where that fails, and never another tenant's."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates

from ..support.in_process import INSTALLED
from ..support.orders import Orders

MINE = '{"auths": {"mine.example.com": {}}}'
FOREIGN = "of-another-tenant"
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": SITE_NAMESPACE}}


def ref(name: str = "registries", key: str = "config", **more: str) -> dict[str, Any]:
    return {"secretRef": {"name": name, "key": key} | more}


def failure(orders: Orders, name: str = "demo") -> tuple[str, bool, str]:
    found = orders.status(name)["failure"]
    return found["reason"], found["retryable"], found["message"]


def stored(orders: Orders, name: str = "demo") -> str:
    secret = orders.kube.get("v1", "Secret", f"{name}-pull-secret", orders.working(name))
    return base64.b64decode(secret["data"][".dockerconfigjson"]).decode()


def has_nothing(orders: Orders, name: str) -> bool:
    """Whether nothing was left behind for the order."""
    return (
        orders.kube.find("v1", "Namespace", orders.working(name)) is None
        and "finalizers" not in orders.get(name)["metadata"]
        and "holderIdentity" not in orders.lease(name)
    )


def warnings(orders: Orders, name: str = "demo") -> list[tuple[str, str]]:
    found = orders.kube.list_all("v1", "Event", orders.namespace, field_selector=f"involvedObject.name={name},reason=InlineSecrets")
    return [(item["type"], item["message"]) for item in found]


def test_the_next_run_applies_the_current_content_of_the_secret(orders: Orders) -> None:
    orders.put_secret("registries", config=f"{MINE}\n")
    orders.apply(nodes={"fc430": 1}, pull_secret=ref())
    orders.provision(wait=0)
    assert stored(orders) == MINE
    before = orders.versions()["Secret/demo-pull-secret"]
    orders.provision(wait=0)
    assert orders.versions()["Secret/demo-pull-secret"] == before
    orders.put_secret("registries", config='{"auths": {}}')
    orders.provision(wait=0)
    assert stored(orders) == '{"auths": {}}'
    assert warnings(orders) == []
    orders.tenant.delete(orders.tenant.get("v1", "Secret", "registries", orders.namespace))
    orders.run("delete", "demo").complete().successful()  # without the Secret too


def test_a_secret_or_key_that_is_missing_is_one_message_and_the_same_order_works_once_it_exists(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1}, pull_secret=ref())
    for problem in (
        f"the Secret registries, which does not exist: create it with the key config in {orders.namespace}.",
        "the key config, which the Secret registries does not have: add it.",
    ):
        text = f"A secret of the order is missing: parameter pull_secret refers to {problem}"
        run = orders.run("provision", "demo").complete()
        assert failure(orders) == ("SecretsMissing", True, text)
        assert text in run.messages and orders.condition("Accepted")["message"] == text
        assert has_nothing(orders, "demo")
        orders.put_secret("registries", other=MINE)
    orders.put_secret("registries", other=MINE, config=MINE)
    orders.provision(wait=0)
    assert stored(orders) == MINE


def test_a_secret_that_is_not_text_says_so(orders: Orders) -> None:
    orders.put_secret("registries")
    binary = {"data": {"config": base64.b64encode(b"\xff\xfe").decode()}}
    orders.tenant.patch(orders.tenant.get("v1", "Secret", "registries", orders.namespace), binary)
    orders.apply(nodes={"fc430": 1}, pull_secret=ref())
    orders.run("provision", "demo").complete()
    text = "refers to the key config of the Secret registries, which is not text in UTF-8: replace its value."
    assert failure(orders)[2].endswith(f"parameter pull_secret {text}")


@pytest.mark.usefixtures("strict")
def test_a_secret_in_the_order_raises_a_warning_and_a_site_can_refuse_it(orders: Orders) -> None:
    text = 'parameter pull_secret must be {"secretRef": {"name": ..., "key": ...}}: this site allows no secrets in an order.'
    orders.apply("refused", nodes={"fc430": 1}, pull_secret=MINE)
    orders.run("provision", "refused").complete()
    reason, retryable, message = failure(orders, "refused")
    assert (reason, retryable) == ("InvalidOrder", False)
    assert message.endswith(text)
    assert has_nothing(orders, "refused")
    orders.kube.patch(SETTINGS, {"data": {"allow_inline_secrets": None}}, checked=False)
    orders.apply(nodes={"fc430": 1}, pull_secret=MINE)
    orders.provision(wait=0)
    assert stored(orders) == MINE
    ((kind, warning),) = warnings(orders)
    assert kind == "Warning" and "secret parameters pull_secret in plain text" in warning and "mine.example.com" not in warning


@pytest.fixture
def strict(orders: Orders) -> Iterator[None]:
    orders.kube.patch(SETTINGS, {"data": {"allow_inline_secrets": "false"}}, checked=False)
    yield
    orders.kube.patch(SETTINGS, {"data": {"allow_inline_secrets": None}}, checked=False)


# Secrets of others


@pytest.fixture
def other(orders: Orders) -> Iterator[str]:
    """The namespace of another tenant, who has a Secret."""
    hub: Access = orders.hub
    with fresh_namespace(hub) as namespace:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": namespace}}
        hub.kube.create(secret | {"stringData": {"config": FOREIGN}})
        yield namespace


def test_no_secret_parameter_of_any_template_reads_a_secret_of_another_tenant(orders: Orders, other: str) -> None:
    """All in one run: for each parameter one order that names the other namespace, one that has it in the name, one with the bare name."""
    references = (ref("theirs", namespace=other), ref(f"../../{other}/secrets/theirs"), ref("theirs"))
    missing = f"refers to the Secret theirs, which does not exist: create it with the key config in {orders.namespace}"
    wanted = ("cannot name a namespace", "must be the name of a Secret", missing)
    tried: dict[str, tuple[str, str]] = {}
    for template in find_templates([INSTALLED]).values():
        if not template.id.startswith("openfleet.clusters."):
            continue
        for parameter in (option.name for option in template.parameters().members.values() if option.no_log):
            for reference, text in zip(references, wanted, strict=True):
                name = f"order-{len(tried)}"
                tried[name] = (parameter, text)
                orders.apply(name, template=template.id, **{parameter: reference})
    assert len(tried) >= 3 * 5, "the templates of this collection have secret parameters"
    run = orders.run("provision", *tried).complete()
    assert run.orders == []
    for name, (parameter, text) in tried.items():
        reason, _retryable, message = failure(orders, name)
        assert reason in ("InvalidOrder", "SecretsMissing")
        assert f"parameter {parameter}" in message and text in message, message
        assert FOREIGN not in message
        assert has_nothing(orders, name)
