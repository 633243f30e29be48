"""Where the text of parameters goes that take any: a tenant who names a namespace of another one reaches nothing in it.

`tests/unit/templates/test_tenant_reach.py` has the table of all parameters.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..support.census import Census
from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH
from ..support.orders import Orders


@pytest.fixture
def victim(orders: Orders) -> Iterator[str]:
    """The namespace of another tenant, with a Secret of the same name."""
    with fresh_namespace(orders.hub) as namespace:
        metadata = {"name": namespace, "namespace": namespace}
        orders.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": "dGhlaXJz"}})
        for kind, name in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):  # which Kubernetes itself creates
            until(lambda kind=kind, name=name: orders.kube.find("v1", kind, name, namespace), f"it has the {kind}")  # type: ignore[misc]
        yield namespace


def paths_with(value: Any, text: str, path: str = "") -> Iterator[str]:
    """The paths of the strings that contain the text, also in the data of Secrets."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "managedFields":
                yield from paths_with(item, text, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from paths_with(item, text, f"{path}[]")
    elif isinstance(value, str) and (text in value or text in _decoded(value)):
        yield path


def _decoded(text: str) -> str:
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode(text, validate=True).decode()
    return ""


def test_text_of_an_order_stays_in_its_own_objects(orders: Orders, victim: str) -> None:
    orders.put_secret("idp", client="of-no-value")
    census = Census(orders.hub)
    before, theirs = census.take(), orders.kube.get("v1", "Secret", victim, victim)
    own = {"idp_issuer": "https://login.example.com", "idp_client_secret": {"secretRef": {"name": "idp", "key": "client"}}}
    orders.apply(template="ocp_4_17_small_idp", ssh_public_key=victim, idp_name=victim, idp_client_id=victim, **own)
    orders.provision()
    made: list[Object] = [item for item in census.objects() if item["kind"] != "ClusterOrder" and census.name(item) not in before]
    found = {f"{item['kind']}{path}" for item in made for path in paths_with(item, victim)}
    assert found == {
        "Secret.data.id_rsa.pub",
        "HostedCluster.metadata.annotations.openfleet.clusters/configured-identity-providers",
        "HostedCluster.spec.configuration.oauth.identityProviders[].name",
        "HostedCluster.spec.configuration.oauth.identityProviders[].openID.clientID",
    }
    assert {item["metadata"].get("namespace") for item in made if list(paths_with(item, victim))} == {orders.working()}
    assert orders.kube.get("v1", "Secret", victim, victim) == theirs


# Where the text of a parameter is in the request to OpenShift Cluster Manager; it refuses what is no region of the
# cloud.
ASKED: dict[str, set[str]] = {"region": set(), "version": {".version.id"}, "aws_account_id": {".aws.account_id"}}


def test_text_of_an_order_for_a_managed_cluster_stays_in_the_request_of_its_account(orders: Orders, victim: str) -> None:
    census = Census(orders.hub)
    orders.put_secret("keys", aws_access_key_id="AKIA", aws_secret_access_key="of-no-value")  # noqa: S106 made up
    before = census.take()
    keys = {name: {"secretRef": {"name": "keys", "key": name}} for name in ("aws_access_key_id", "aws_secret_access_key")}
    for parameter, paths in ASKED.items():
        with standing_in(hurried=True) as service:
            site = {"osd_small_url": service.url, "osd_small_token_url": f"{service.url}{TOKEN_PATH}", "osd_small_token": OFFLINE_TOKEN}
            orders.apply(parameter.replace("_", "-"), template="osd_small", ccs=True, **{"aws_account_id": "1", **keys, parameter: victim})
            orders.run("provision", parameter.replace("_", "-"), site=site).complete()
            assert {path for cluster in service.clusters.values() for path in paths_with(cluster, victim)} == paths, parameter
    made = [item for item in census.objects() if item["kind"] != "ClusterOrder" and census.name(item) not in before]
    named = [item for item in made if list(paths_with(item, victim))]
    assert {item["metadata"].get("namespace") for item in named} <= {orders.working(name.replace("_", "-")) for name in ASKED}
