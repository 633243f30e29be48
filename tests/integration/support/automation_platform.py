"""The document that is generated for a site, requests to the stand-in for Automation Platform, and what its jobs run with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.platform.exchange import Request
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.jobs import Launch
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import Content
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import ROOT, Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.document import generate
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.facts import read_facts
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.secrets import Secrets
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.site import parse

BASE = "/api/v2/"
NO_CREDENTIALS = ("OPENFLEET_TEST", "KUBECONFIG", "K8S_AUTH_")


def generated(url: str, kubeconfig: Path) -> Content:
    """The document for a platform at this address and a hub with this kubeconfig."""
    site = {
        "address": url,
        "organization": "fleet",
        "project": {"url": "https://git.example.com/openfleet.git"},
        "images": {"execution_environment": "registry.example.com/ee:1", "decision_environment": "registry.example.com/de:1"},
        "hub": {"secret": "openfleet-hub", "kubeconfig": str(kubeconfig)},
    }
    secrets = Secrets("for the platform", "for launches", "of the hub", "of webhooks")
    return generate(read_facts(ROOT, []), parse(site, []), secrets)


def request(platform: Platform, method: str, path: str, **fields: Any) -> Any:
    """The answer to a request of an administrator, without HTTP."""
    authorization = f"Bearer {platform.token()}"
    response = platform.controller.handle(Request(method, BASE + path, body=fields or None, authorization=authorization, base=BASE))
    assert response.status < 300, response.body
    return response.body


def create(platform: Platform, path: str, **fields: Any) -> int:
    return int(request(platform, "POST", path, **fields)["id"])


def labels_of(platform: Platform, launch: Launch) -> list[str]:
    kind = "workflow_jobs" if launch.workflow else "jobs"
    return [label["name"] for label in request(platform, "GET", f"{kind}/{launch.job}/labels/")["results"]]


def environment_of(engine_environment: Mapping[str, str]) -> dict[str, str]:
    """What a job runs with: as the engine, without what marks its processes, and without its access to the hub."""
    return {key: value for key, value in {**os.environ, **engine_environment}.items() if not key.startswith(NO_CREDENTIALS)}
