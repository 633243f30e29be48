"""What a tenant may set: templates that the site offers to the namespace, and the site's parameters only as it allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.orders import Orders

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": SITE_NAMESPACE}}


@pytest.fixture
def site(orders: Orders) -> Iterator[Orders]:
    before = orders.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE)["data"]
    yield orders
    data = orders.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE)["data"]
    orders.kube.patch(SETTINGS, {"data": dict.fromkeys(data) | before}, checked=False)


def configure(orders: Orders, **settings: Object) -> None:
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


@pytest.mark.parametrize("parameter", ["agent_namespace", "release_image", "base_domain"])
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
