"""Orders as files: what is rendered, refused and kept, and what differs from a hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.drift import Drift, HubOrder, covered_namespaces, find_drift
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.order_file import (
    OrderFile,
    differences,
    merge,
    read,
    to_text,
    validate,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.templates import catalogue
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder

API = "cloudkit.openshift.io/v1alpha1"
COLLECTIONS = Path(catalogue.__file__).parents[5]
REFERENCE = {"secretRef": {"name": "registries", "key": ".dockerconfigjson"}}
WANTED = OrderFile("team", "demo", "ocp_4_17_small", {"pull_secret": REFERENCE}, [{"resourceClass": "fc430", "numberOfNodes": 2}])


def test_a_new_order_is_reviewable_yaml_that_reads_back() -> None:
    order = merge(WANTED, API, None)
    text = to_text(order)
    assert read(text) == order
    assert '      "name": "registries"\n' in text, "parameters are on lines of their own"
    assert (WANTED.path("clusters/orders"), text.splitlines()[1]) == ("clusters/orders/team/demo.yaml", f"apiVersion: {API}")


def test_what_is_not_given_stays_as_the_file_has_it() -> None:
    before = to_text(merge(OrderFile("team", "demo", "ocp_4_17_small", {"a": 1}, labels={"x": "1", "y": "1"}), API, None))
    after = merge(OrderFile("team", "demo", node_requests=[{"resourceClass": "c", "numberOfNodes": 3}], labels={"y": "2"}), API, before)
    assert after["spec"]["templateID"] == "ocp_4_17_small" and json.loads(after["spec"]["templateParameters"]) == {"a": 1}
    assert after["metadata"]["labels"] == {"x": "1", "y": "2"} and after["spec"]["nodeRequests"][0]["numberOfNodes"] == 3
    assert to_text(merge(OrderFile("team", "demo"), API, before)) == before, "nothing given is nothing changed"


def test_a_new_order_needs_a_template() -> None:
    with pytest.raises(Invalid, match="template_id is required"):
        merge(OrderFile("team", "demo"), API, None)


@pytest.mark.parametrize(
    ("namespace", "name", "folder"),
    [("team", "../../x", "orders"), ("..", "demo", "orders"), ("team", "a..b", "orders"), ("team", "demo", "../x"), ("team", "demo", "/x"),
     ("team", "demo", ".github"), ("team", "demo", "a//b"), ("Team", "demo", "orders"), ("team", "demo", "")],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(namespace: str, name: str, folder: str) -> None:
    with pytest.raises(Invalid):
        OrderFile(namespace, name).path(folder)


TEMPLATE = resolve("ocp_4_17_small", find_templates([COLLECTIONS]))


@pytest.mark.parametrize(
    ("parameters", "nodes", "problem"),
    [
        ({"pull_secret": REFERENCE}, None, ""),
        ({}, None, ""),  # the site may have a pull secret
        ({"pull_secret": REFERENCE, "release_image": "example.com/any:1"}, None, ""),  # the site may allow it
        ({"pull_secret": '{"auths": {"x": {"auth": "s3cret"}}}'}, None, "parameter pull_secret must be"),
        ({"pul_secret": REFERENCE}, None, "pul_secret"),
        ({"version": 4.17}, None, "version"),
        ({}, [{"resourceClass": "fc430", "numberOfNodes": -1}], "nodeRequests"),
    ],
)
def test_parameters_are_validated_without_the_hub(parameters: Any, nodes: Any, problem: str) -> None:
    order = merge(OrderFile("team", "demo", "ocp_4_17_small", parameters, nodes), API, None)
    if not problem:
        validate(order, TEMPLATE)
        return
    with pytest.raises(InvalidOrder, match=problem) as error:
        validate(order, TEMPLATE)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("text", ["", "- 1", "kind: Secret", "kind: ClusterOrder", "kind: ClusterOrder\nmetadata: {name: a}", "a: *b", "{"])
def test_what_is_no_file_of_an_order(text: str) -> None:
    with pytest.raises(Invalid):
        read(text)


@pytest.mark.parametrize(
    ("section", "odd"),
    [
        ("spec", {"templateID": {"a": 1}}),
        ("spec", {"templateParameters": {"pull_secret": "x"}}),
        ("spec", {"nodeRequests": 3}),
        ("spec", {"nodeRequests": ["fc430"]}),
        ("spec", {"nodeRequests": [{"resourceClass": "fc430"}, {"resourceClass": "fc430", "numberOfNodes": 1}]}),
        ("metadata", {"labels": ["team"]}),
        ("metadata", {"annotations": "x"}),
    ],
)
def test_a_file_with_a_field_of_another_type_is_invalid_and_does_not_end_the_comparison(section: str, odd: Any) -> None:
    item = order()
    text = yaml.safe_dump(item | {section: item[section] | odd})
    (found,) = find_drift({"orders/team/demo.yaml": text}, "orders", [HubOrder(order())])
    assert (found.state, found.hub) == (
        "InvalidFile",
        [f"The ClusterOrder of the file has {next(iter(odd))} of another type than orders have."],
    )


def order(**change: Any) -> Any:
    item = merge(WANTED, API, None)
    return item | {"spec": item["spec"] | change}


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({}, []),
        ({"templateParameters": json.dumps({"pull_secret": REFERENCE})}, []),  # another layout of the same
        ({"templateID": "other"}, ["templateID"]),
        ({"templateParameters": json.dumps({"pull_secret": "s3cret"})}, ["templateParameters.pull_secret"]),
        ({"templateParameters": "no JSON"}, ["templateParameters.(not a JSON object)", "templateParameters.pull_secret"]),
        ({"nodeRequests": []}, ["nodeRequests"]),
    ],
)
def test_differences_name_fields_and_no_values(change: Any, fields: list[str]) -> None:
    assert differences(order(), order(**change)) == fields


def test_labels_that_only_the_hub_has_are_no_difference() -> None:
    wanted, present = order(), order()
    wanted["metadata"]["labels"] = {"team": "blue"}
    present["metadata"]["labels"] = {"team": "red", "kustomize.toolkit.fluxcd.io/name": "orders"}
    assert differences(wanted, present) == ["labels.team"]


def test_drift_of_repository_hub_and_cluster() -> None:
    def hub(name: str, *cluster: str, **change: Any) -> HubOrder:
        item = order(**change)
        return HubOrder(item | {"metadata": item["metadata"] | {"name": name}}, cluster)

    def file(name: str) -> str:
        return to_text(merge(OrderFile("team", name, WANTED.template_id, WANTED.template_parameters, WANTED.node_requests), API, None))

    files = {f"orders/team/{name}.yaml": file(name) for name in ("same", "changed", "new", "slow")}
    files |= {"orders/team/broken.yaml": "{", "orders/team/moved.yaml": file("elsewhere")}
    orders = [hub("same"), hub("changed", nodeRequests=[]), hub("slow", "NodesReady: 1 of 2 nodes ready"), hub("extra")]
    found = {entry.name: entry for entry in find_drift(files, "orders", orders)}
    assert {name: entry.state for name, entry in found.items()} == {
        "broken": "InvalidFile",
        "changed": "Different",
        "extra": "OnlyOnHub",
        "moved": "InvalidFile",
        "new": "MissingOnHub",
        "same": "InSync",
        "slow": "InSync",
    }
    assert found["changed"] == Drift("team", "changed", "Different", "orders/team/changed.yaml", ["nodeRequests"], [])
    assert [name for name, entry in found.items() if entry.as_dict()["in_sync"]] == ["same"], "a cluster that lacks something is not"
    assert covered_namespaces([*files, "orders/README.yaml", "orders/other/x.yaml"], "orders") == {"team", "other"}


def test_rendered_yaml_is_plain() -> None:
    text = to_text(order(templateParameters=json.dumps({"a": "ü\n- x"})))
    assert yaml.safe_load(text)["spec"]["templateParameters"] == json.dumps({"a": "ü\n- x"})
