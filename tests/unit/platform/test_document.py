"""What a document may say: one message for each mistake, with what to do."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.document import Named, find_cycle, read
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.errors import InvalidDocument

from .platform_site import document

NODES = "simplified_workflow_nodes"


def workflow(name: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "organization": "fleet", NODES: list(nodes)}


def node(identifier: str, launches: str = "job", **edges: Any) -> dict[str, Any]:
    return {"identifier": identifier, "unified_job_template": launches, **edges}


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"controller_template": []}, "controller_template is not a key of a document (did you mean controller_templates"),
    "no list": ({"controller_templates": {"name": "a"}}, "controller_templates is not a list of objects"),
    "no name": ({"aap_organizations": [{"description": "x"}]}, "aap_organizations[0] has no name: add one."),
    "unknown field": (
        {"controller_templates": [{"name": "a", "playbok": "x"}]},
        "controller_templates[0] (a): a job template has no field playbok (did you mean playbook?): remove it, or correct its name.",
    ),
    "state": ({"controller_labels": [{"name": "a", "state": "gone"}]}, "state is gone; set one of present, absent."),
    "reference": ({"controller_templates": [{"name": "a", "project": 5}]}, "project is not a reference: write the name of the object"),
    "list": ({"controller_templates": [{"name": "a", "credentials": "x"}]}, "credentials is not a list"),
    "same twice": (
        {"controller_labels": [{"name": "a", "organization": "x"}, {"name": "a", "organization": "x"}]},
        "controller_labels[1] (a) and controller_labels[0] are the same label: remove or rename one.",
    ),
    "name of another organization": (
        {"controller_execution_environments": [{"name": "a", "organization": "x"}, {"name": "a", "organization": "y"}]},
        "are the same execution environment",
    ),
    "survey without questions": ({"controller_templates": [{"name": "a", "survey_spec": {"name": ""}}]}, "survey_spec has no questions"),
    "node without template": ({"controller_workflows": [workflow("w", {"identifier": "a"})]}, "node a launches nothing"),
    "node twice": ({"controller_workflows": [workflow("w", node("a"), node("a"))]}, "two nodes have the identifier a: rename one."),
    "edge to nowhere": (
        {"controller_workflows": [workflow("w", node("post", success_nodes=["pots"]))]},
        "node post continues with pots, which is not one of its nodes (did you mean post?).",
    ),
    "cycle of nodes": (
        {
            "controller_workflows": [
                workflow("w", node("a", success_nodes=["b"]), node("b", failure_nodes=["c"]), node("c", always_nodes=["a"]))
            ]
        },
        "controller_workflows[0] (w) has a cycle: a -> b -> c -> a. Remove one of these edges.",
    ),
    "cycle of workflows": (
        {"controller_workflows": [workflow("v", node("a", "w")), workflow("w", node("a", "v"))]},
        "The launches of workflows form a cycle: v -> w -> v. Remove one of these nodes.",
    ),
    "event stream without source": (
        {"eda_rulebook_activations": [{"name": "a", "event_streams": [{"event_stream": "x"}]}]},
        "each of event_streams needs event_stream, and one of source_name and source_index.",
    ),
    "role without object": ({"controller_roles": [{"team": "a", "role": "admin"}]}, "names no role on an object: add an object."),
    "unknown field of a role": (
        {"controller_roles": [{"team": "a", "role": "admin", "project": "p", "organisation": "x"}]},
        "a role has no field organisation (did you mean organizations",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_has_one_message_that_says_what_to_do(mistake: str) -> None:
    content, message = MISTAKES[mistake]
    with pytest.raises(InvalidDocument) as caught:
        read(content)
    assert len(caught.value.problems) == 1
    assert message in caught.value.problems[0]
    assert "nothing was written" in str(caught.value)


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(InvalidDocument) as caught:
        read({"x": [], "controller_labels": [{}, {"name": "a", "b": 1}]})
    assert len(caught.value.problems) == 3


def test_document_of_every_kind_is_read() -> None:
    found = read(document())
    assert len(found.items) == 21
    created = next(item for item in found.items if item.kind.key == "controller_workflows")
    assert created.scope == "fleet"
    assert [each.edges["success_nodes"] for each in created.nodes or ()] == [("post",), (), ()]


def test_names_of_other_forms_are_understood() -> None:
    content = {
        "eda_rulebook_activations": [{"name": "a", "project_name": "p", "organization_name": "o", "state": "disabled"}],
        "controller_templates": [
            {
                "name": "t",
                "project": {"name": "p", "organization": {"name": "o"}},
                "ask_tags": True,
                "related": {"credentials": [{"name": "c"}], "survey_spec": {"spec": [{"variable": "x"}]}},
                "roles": {"execute": {"teams": ["ops"]}},
            }
        ],
        "controller_workflows": [
            {
                "name": "w",
                "related": {
                    "workflow_nodes": [
                        {
                            "identifier": "a",
                            "unified_job_template": {"name": "t", "type": "job_template", "organization": {"name": "o"}},
                            "related": {"success_nodes": [{"identifier": "b"}], "credentials": []},
                        },
                        {"identifier": "b", "unified_job_template": {"name": "yes?", "type": "workflow_approval", "timeout": 60}},
                    ]
                },
            }
        ],
    }
    activation, template, workflow_template = sorted(read(content).items, key=lambda item: item.name)
    assert activation.values == {"project": Named("p"), "organization": Named("o"), "enabled": False}
    assert template.values == {"project": Named("p", "o"), "ask_tags_on_launch": True, "credentials": (Named("c"),)}
    assert template.survey == {"spec": [{"variable": "x"}]}
    first, second = workflow_template.nodes or ()
    assert first.values["unified_job_template"] == Named("t", "o", "controller_templates")
    assert first.edges["success_nodes"] == ("b",)
    assert second.approval == {"name": "yes?", "timeout": 60}
    assert [grant.called for grant in read(content).grants] == ["team ops: execute on job template t"]


@pytest.mark.parametrize(
    ("graph", "cycle"),
    [
        ({"a": ["b"], "b": []}, []),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, []),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
    ],
)
def test_cycle_is_found(graph: dict[str, list[str]], cycle: list[str]) -> None:
    assert find_cycle(graph, lambda name: graph[name]) == cycle
