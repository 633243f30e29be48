"""What the site decides: templates on offer, values of its parameters, defaults of others, and what a template's tasks know of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.site import RELEASES
from ansible_collections.openfleet.clusters.extensions.sandbox.site import SECRETS as SANDBOX
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_secrets import SECRET
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.orders import Orders

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": SITE_NAMESPACE}}


SECRETS = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": SITE_NAMESPACE}}


@pytest.fixture
def site(orders: Orders) -> Iterator[Orders]:
    def data(item: Object) -> Object:
        found: Object = orders.kube.get("v1", item["kind"], item["metadata"]["name"], SITE_NAMESPACE)["data"]
        return found

    before = [(item, data(item)) for item in (SETTINGS, SECRETS)]
    yield orders
    for item, original in before:
        orders.kube.patch(item, {"data": dict.fromkeys(data(item)) | original}, checked=False)


def configure(orders: Orders, **settings: Any) -> None:
    data = {key: yaml.safe_dump(value, sort_keys=False) for key, value in settings.items()}
    orders.kube.patch(SETTINGS, {"data": data}, checked=False)


def refusal(orders: Orders, name: str = "demo") -> str:
    orders.run("provision", name).complete()
    status = orders.status(name)
    assert orders.names(name) == [], "nothing was created"
    return f"{status['failure']['reason']}: {status['failure']['message']}"


def test_a_template_that_the_site_does_not_offer_is_refused(site: Orders) -> None:
    configure(site, templates={site.namespace: ["capi_small"], "*": ["*"]})
    site.apply(nodes={"fc430": 1})
    assert refusal(site).startswith("TemplateNotOffered: The site does not offer the cluster template openfleet.clusters.ocp_4_17_small")
    configure(site, templates={site.namespace: ["ocp_*"]})
    site.apply(nodes={"fc430": 2})
    site.provision(wait=0)
    assert site.pools() == {"fc430": 2}
    configure(site, templates={site.namespace: []})
    site.remove()
    assert site.is_deleted(), "what is no longer on offer can still be deleted"


def test_a_deletion_whose_template_is_missing_for_a_while_is_retried(site: Orders) -> None:
    template = site.template("vanishing", post_install="[]\n")
    site.apply(template=template, nodes={"fc430": 1})
    site.provision(wait=0)
    role = next(site.folder.rglob("vanishing/meta/template.yml"))
    content = role.read_text(encoding="utf-8")
    role.unlink()
    site.ask_to_delete("demo")
    site.run("delete", "demo").complete()
    assert (site.status()["failure"]["reason"], site.status()["failure"]["retryable"]) == ("UnknownTemplate", True)
    role.write_text(content, encoding="utf-8")
    site.remove()
    assert site.is_deleted()


@pytest.mark.parametrize("parameter", ["release_image", "base_domain"])
def test_parameters_that_reach_outside_are_the_sites(site: Orders, parameter: str) -> None:
    site.apply(nodes={"fc430": 1}, **{parameter: "of-another-tenant"})
    assert f"InvalidOrder: The order does not fit its cluster template openfleet.clusters.ocp_4_17_small: parameter {parameter}" in refusal(
        site
    )
    configure(site, parameters={parameter: {"allowed": ["of-another-tenant"], "default": "x"}})
    site.apply(nodes={"fc430": 2}, **{parameter: "of-another-tenant"})
    site.provision(wait=0)
    assert "of-another-tenant" in yaml.safe_dump(site.hosted_cluster()["spec"])


def test_settings_that_cannot_be_read_say_so_on_each_order_and_keep_no_cluster_alive(site: Orders) -> None:
    site.apply(nodes={"fc430": 1})
    site.provision(wait=0)
    configure(site, templates=["nonsense"])
    site.apply("other", nodes={"fc430": 1})
    assert refusal(site, "other").startswith("InvalidSiteSettings: The site's settings, ConfigMap openfleet-system/site-settings, cannot")
    assert site.status("other")["failure"]["retryable"]
    site.remove()
    assert site.is_deleted()


# What the site has for clusters


def test_an_order_without_secrets_and_image_has_those_of_the_site(site: Orders) -> None:
    site.apply(nodes={"fc430": 1}, version="4.17.1")
    run = site.provision(wait=0)
    for name, value in (("pull-secret", SANDBOX["pull_secret"]), ("ssh-key", SANDBOX["ssh_public_key"])):
        (stored,) = site.kube.get("v1", "Secret", f"demo-{name}", site.working())["data"].values()
        assert base64.b64decode(stored).decode() == value
    assert site.hosted_cluster()["spec"]["release"]["image"] == RELEASES["4.17.1"]
    assert "auths" not in json.dumps(run.orders[0]["cluster_site"])


def test_a_default_that_the_site_lacks_is_one_message_and_nothing_is_created(site: Orders) -> None:
    site.kube.patch(SECRETS, {"data": {"pull_secret": None}}, checked=False)
    site.apply(nodes={"fc430": 1})
    assert refusal(site) == (
        "InvalidOrder: The order does not fit its cluster template openfleet.clusters.ocp_4_17_small:"
        " parameter pull_secret is required, because this site has no default for it."
    )
    assert site.kube.find("v1", "Namespace", site.working()) is None


def test_a_secret_of_the_site_that_cannot_be_used_is_named_by_its_key(site: Orders) -> None:
    site.kube.patch(SECRETS, {"stringData": {"pull_secret": "hunter2"}}, checked=False)
    site.apply(nodes={"fc430": 1})
    message = refusal(site)
    assert message.startswith("InvalidSiteSettings: The site's settings, Secret openfleet-system/site-secrets, cannot be used: pull_secret")
    assert "hunter2" not in message
    assert site.status()["failure"]["retryable"]


def test_the_tasks_of_every_step_know_what_the_site_has(site: Orders) -> None:
    part = {"adapter": "acme.site.dns", "zone": "example.com"}
    configure(site, classes={"fc430": {"kind": "agent"}}, infrastructure={"dns": part}, agent_namespace="hosts")
    site.apply(nodes={"fc430": 1}, template=site.template("aware", post_install="[]\n"))
    for step in ("provision", "delete"):
        (order,) = site.run(step, "demo").finish().orders
        assert order["cluster_site"] == {
            "agent_namespace": "hosts",
            "classes": {"fc430": {"kind": "agent"}},
            "release_images": RELEASES,
            "storage_classes": {},
            "infrastructure": {"dns": part},
        }


def test_a_deletion_waits_for_settings_without_which_it_leaves_something_behind(site: Orders) -> None:
    site.apply(nodes={"fc430": 1})
    site.provision(wait=0)
    site.apply("new", nodes={"fc430": 1})
    configure(site, infrastructure={"dns": {"adapter": ""}})
    site.remove("new")
    assert site.is_deleted("new"), "nothing was created for it"
    site.ask_to_delete("demo")
    site.run("delete", "demo").complete()
    failure = site.status()["failure"]
    assert "infrastructure.dns.adapter must be the name of a role" in failure["message"] and failure["retryable"]
    assert site.hosted_cluster()
    configure(site, infrastructure={}, templates=["nonsense"])
    site.run("delete", "demo").complete().successful()
