"""A platform for tests: the stand-in, a hub in memory for the ledger, and a document that uses every kind."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.client import Access, PlatformApi
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.configuration import configure, remove
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.ledger import Ledger, LedgerStore
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.plan import Plan

SECONDS = 300.0
SECRET = "s3cr3t-of-the-hub"  # noqa: S105 - tests look for it where it must not be


@dataclass
class Hub:
    """The requests that a ledger sends, answered from memory."""

    secrets: dict[tuple[str, str], Object] = field(default_factory=dict)
    writes: int = 0

    def find(self, _version: str, _kind: str, name: str, namespace: str) -> Object | None:
        return copy.deepcopy(self.secrets.get((namespace, name)))

    def create(self, item: Object) -> Object:
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        if key in self.secrets:
            raise Conflict("it exists")
        return self._put(key, item)

    def patch(self, item: Object, changes: Object) -> Object:
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        if self.secrets[key]["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            raise Conflict("it has changed")
        return self._put(key, item | changes)

    def delete(self, item: Object, *, checked: bool) -> bool:
        assert checked
        return self.secrets.pop((item["metadata"]["namespace"], item["metadata"]["name"]), None) is not None

    def _put(self, key: tuple[str, str], item: Object) -> Object:
        self.writes += 1
        item = copy.deepcopy(item)
        item["metadata"]["resourceVersion"] = str(self.writes)
        self.secrets[key] = item
        return copy.deepcopy(item)


@dataclass
class Site:
    """The stand-in and its address, and what a task does with them."""

    platform: Platform
    url: str
    hub: Hub = field(default_factory=Hub)
    token: str = ""

    def api(self) -> PlatformApi:
        return PlatformApi(Access(self.url, self.token or self.platform.token()), SECONDS)

    def store(self) -> LedgerStore:
        return LedgerStore(self.hub, "openfleet-system", "platform")  # type: ignore[arg-type]

    def ledger(self) -> Ledger:
        return self.store().read()

    def configure(self, document: Object, *, check_mode: bool = False) -> Plan:
        """Run a task. `requests` of the platform are those of this task only."""
        self.platform.requests.clear()
        return configure(self.api(), self.store(), document, check_mode=check_mode)

    def remove(self) -> Plan:
        self.platform.requests.clear()
        return remove(self.api(), self.store(), check_mode=False)

    def named(self, collection: str, name: str) -> Object:
        eda = collection in self.platform.eda_store.kinds and collection not in self.platform.controller_store.kinds
        objects = self.platform.eda_objects(collection) if eda else self.platform.objects(collection)
        return next(found for found in objects if found.get("name") == name)

    def names(self, collection: str) -> list[str]:
        return sorted(str(found.get("name")) for found in self.platform.objects(collection))


@contextlib.contextmanager
def serving(*, gateway: bool = False) -> Iterator[Site]:
    platform = Platform(gateway=gateway)
    with platform.serving() as url:
        yield Site(platform, url)


def template(number: int, **fields: Any) -> Object:
    return {
        "name": f"template-{number}",
        "organization": "fleet",
        "project": "fleet",
        "playbook": "playbooks/sync_status.yml",
        "inventory": "fleet",
        "execution_environment": "fleet-ee",
        "credentials": ["hub"],
        "instance_groups": ["fleet-pods"],
        "labels": ["fleet"],
        "extra_vars": {"number": number},
        "ask_variables_on_launch": True,
        **fields,
    }


def document(templates: int = 3) -> Object:
    """Every kind, as a generated document has them."""
    survey = {
        "name": "",
        "description": "",
        "spec": [
            {"question_name": "Order", "variable": "order", "type": "text", "required": True, "default": ""},
            {"question_name": "Key", "variable": "key", "type": "password", "required": False, "default": "p4ssw0rd-of-a-survey"},
        ],
    }
    return {
        "aap_organizations": [
            {"name": "fleet", "description": "Clusters", "galaxy_credentials": ["galaxy"], "default_environment": "fleet-ee"}
        ],
        "controller_credential_types": [
            {
                "name": "hub",
                "kind": "cloud",
                "inputs": {
                    "fields": [{"id": "host", "label": "Host"}, {"id": "token", "label": "Token", "secret": True}],
                    "required": ["host"],
                },
                "injectors": {"env": {"K8S_AUTH_HOST": "{{ host }}", "K8S_AUTH_API_KEY": "{{ token }}"}},
            }
        ],
        "controller_credentials": [
            {
                "name": "hub",
                "organization": "fleet",
                "credential_type": "hub",
                "inputs": {"host": "https://hub.example.com", "token": SECRET},
            },
            {
                "name": "galaxy",
                "organization": "fleet",
                "credential_type": "Ansible Galaxy/Automation Hub API Token",
                "inputs": {"url": "https://galaxy.example.com/"},
            },
        ],
        "controller_execution_environments": [
            {"name": "fleet-ee", "organization": "fleet", "image": "registry.example.com/fleet-ee:1", "pull": "missing"}
        ],
        "controller_instance_groups": [
            {"name": "fleet-pods", "is_container_group": True, "pod_spec_override": "apiVersion: v1\nkind: Pod\n"}
        ],
        "controller_projects": [
            {"name": "fleet", "organization": "fleet", "scm_type": "git", "scm_url": "https://git.example.com/fleet.git", "wait": True}
        ],
        "controller_inventories": [{"name": "fleet", "organization": "fleet", "variables": {"site": "here"}}],
        "controller_inventory_sources": [
            {
                "name": "fleet",
                "inventory": "fleet",
                "organization": "fleet",
                "source": "scm",
                "source_project": "fleet",
                "source_path": "hosts",
            }
        ],
        "controller_labels": [{"name": "fleet", "organization": "fleet"}],
        "controller_notifications": [
            {
                "name": "hook",
                "organization": "fleet",
                "notification_type": "slack",
                "notification_configuration": {"token": "t0ken-of-slack", "channels": ["fleet"]},
            }
        ],
        "controller_templates": [
            template(0, survey_enabled=True, survey_spec=survey, notification_templates_error=["hook"]),
            *(template(number) for number in range(1, templates)),
        ],
        "controller_workflows": [
            {
                "name": "create",
                "organization": "fleet",
                "ask_variables_on_launch": True,
                "simplified_workflow_nodes": [
                    {"identifier": "create", "unified_job_template": "template-0", "success_nodes": ["post"], "failure_nodes": ["report"]},
                    {"identifier": "post", "unified_job_template": "template-1", "extra_data": {"a": 1}},
                    {"identifier": "report", "unified_job_template": "template-2"},
                ],
            }
        ],
        "controller_schedules": [
            {"name": "hourly", "unified_job_template": "template-1", "rrule": "DTSTART:20250101T000000Z RRULE:FREQ=HOURLY;INTERVAL=1"}
        ],
        "eda_credentials": [
            {
                "name": "events",
                "organization": "fleet",
                "credential_type": "Basic Event Stream",
                "inputs": {"auth_type": "basic", "username": "sender", "password": "p4ssw0rd-of-a-sender"},
            }
        ],
        "eda_projects": [{"name": "fleet", "organization": "fleet", "url": "https://git.example.com/fleet.git"}],
        "eda_decision_environments": [{"name": "fleet-de", "organization": "fleet", "image_url": "registry.example.com/fleet-de:1"}],
        "eda_event_streams": [{"name": "orders", "organization": "fleet", "credential_name": "events"}],
        "eda_rulebook_activations": [
            {
                "name": "orders",
                "organization": "fleet",
                "project": "fleet",
                "rulebook": "cluster_fulfillment_aap.yml",
                "decision_environment": "fleet-de",
                "extra_vars": {"namespace": "orders"},
                "restart_policy": "always",
                "event_streams": [{"event_stream": "orders", "source_index": 0}],
            }
        ],
    }
