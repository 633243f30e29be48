"""A small document with every kind of object that Automation Platform as code knows, for tests and the benchmark."""

from __future__ import annotations

import copy
from typing import Any

Content = dict[str, list[dict[str, Any]]]
EDGES = ("success_nodes", "failure_nodes", "always_nodes")
SURVEY = {
    "name": "",
    "description": "",
    "spec": [
        {"type": "text", "question_name": "Order", "variable": "order", "required": False, "default": ""},
        {"type": "password", "question_name": "Token", "variable": "token", "required": False, "default": "of the survey"},
    ],
}


def document(templates: int = 2) -> Content:
    """Objects that refer to each other in every way that documents know."""
    own = {"organization": "acme"}
    used = {"project": "site", "inventory": "local", "execution_environment": "site", "instance_groups": ["hub"], "credentials": ["hub"]}
    inputs = {"fields": [{"id": "kubeconfig", "label": "Kubeconfig", "type": "string", "secret": True, "multiline": True}]}
    job_templates = [
        {"name": f"create-{number}", "playbook": "playbooks/create_cluster.yml", "labels": ["openfleet"], "extra_vars": {"number": number}}
        | {"ask_variables_on_launch": True, "ask_limit_on_launch": True, "ask_labels_on_launch": True}
        for number in range(templates)
    ]
    nodes = [
        {"identifier": "create", "unified_job_template": "create-0", "success_nodes": ["finish"], "failure_nodes": ["report"]},
        {"identifier": "finish", "unified_job_template": "create-1"},
        {"identifier": "report", "unified_job_template": "create-1", "extra_data": {"failed": True}},
    ]
    stream = {"auth_type": "token", "http_header_key": "Authorization", "token": "of the stream"}
    return {
        "aap_organizations": [{"name": "acme", "description": "Tenants"}],
        "controller_credential_types": [{"name": "hub", "kind": "cloud", "inputs": inputs, "injectors": {"env": {"HUB": "yes"}}}],
        "controller_credentials": [{"name": "hub", "credential_type": "hub", "inputs": {"kubeconfig": "of the hub"}} | own],
        "controller_execution_environments": [{"name": "site", "image": "registry.example.com/ee:1", "pull": "missing"} | own],
        "controller_instance_groups": [{"name": "hub", "is_container_group": True, "pod_spec_override": "apiVersion: v1\nkind: Pod\n"}],
        "controller_projects": [{"name": "site", "scm_type": "git", "scm_url": "https://git.example.com/site.git"} | own],
        "controller_inventories": [{"name": "local", "variables": {"a": 1}} | own],
        "controller_labels": [{"name": "openfleet"} | own],
        "controller_templates": [{**template, **used, **own} for template in job_templates[:-1]]
        + [{**job_templates[-1], **used, **own, "survey_enabled": True, "survey_spec": SURVEY}],
        "controller_workflows": [{"name": "both", "simplified_workflow_nodes": nodes, "ask_variables_on_launch": True} | own],
        "controller_schedules": [
            {"name": "hourly", "unified_job_template": "create-0", "rrule": "DTSTART:20260101T000000Z RRULE:FREQ=HOURLY;INTERVAL=1"} | own
        ],
        "eda_credentials": [{"name": "webhook", "credential_type": "Token Event Stream", "inputs": stream} | own],
        "eda_projects": [{"name": "site", "url": "https://git.example.com/site.git"} | own],
        "eda_decision_environments": [{"name": "site", "image_url": "registry.example.com/de:1"} | own],
        "eda_event_streams": [{"name": "webhook", "credential_name": "webhook"} | own],
        "eda_rulebook_activations": [
            {
                "name": "orders",
                "project": "site",
                "rulebook": "cluster_fulfillment_aap.yml",
                "decision_environment": "site",
                "extra_vars": {"organization": "acme", "b": 1},
                "event_streams": [{"event_stream": "webhook", "source_index": 0}],
                **own,
            }
        ],
    }


def as_usual(content: Content) -> Content:
    """The same document as the modules of awx.awx take it: nodes with references in full."""
    other = copy.deepcopy(content)
    for workflow in other["controller_workflows"]:
        own = {"type": "job_template", "organization": {"name": workflow["organization"]}}
        nodes = workflow.pop("simplified_workflow_nodes")
        workflow["workflow_nodes"] = [
            {
                "identifier": node["identifier"],
                "extra_data": node.get("extra_data", {}),
                "unified_job_template": {"name": node["unified_job_template"]} | own,
                "related": {edge: [{"identifier": name} for name in node[edge]] for edge in EDGES if edge in node},
            }
            for node in nodes
        ]
    return other
