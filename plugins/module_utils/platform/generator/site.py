# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The site file: what a site alone knows about its Automation Platform, validated, with a default for everything else.

It holds no secret; those are variables of the playbook.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ...common.argument_checker import ArgumentChecker
from ...common.argument_spec_reader import read_options
from ...common.argument_specs import Spec
from ...common.bounded_yaml import BadYaml, load
from ...common.text import did_you_mean
from ...lock.lease import SITE_NAMESPACE
from .variables import SET_BY_PLATFORM

PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
SITE: Spec = {
    "address": {"type": "str", "required": True},
    "validate_certs": {"type": "bool", "default": True},
    "organization": {"type": "str", "required": True},
    "prefix": {"type": "str", "default": "openfleet"},
    "project": {
        "type": "dict",
        "required": True,
        "options": {
            "url": {"type": "str", "required": True},
            "branch": {"type": "str", "default": ""},
            "credential": {"type": "str"},
        },
    },
    "images": {
        "type": "dict",
        "required": True,
        "options": {
            "execution_environment": {"type": "str", "required": True},
            "decision_environment": {"type": "str", "required": True},
            "pull": {"type": "str", "choices": ["always", "missing", "never"], "default": "missing"},
            "credential": {"type": "str"},
        },
    },
    "hub": {
        "type": "dict",
        "required": True,
        "options": {
            "secret": {"type": "str", "required": True},
            "kubeconfig": {"type": "str", "default": "/etc/openfleet/hub/kubeconfig"},
        },
    },
    "jobs": {
        "type": "dict",
        "apply_defaults": True,
        "options": {
            "namespace": {"type": "str"},
            "service_account": {"type": "str", "default": "openfleet-jobs"},
            "secrets": {"type": "dict", "default": {}},
            "credential": {"type": "str"},
        },
    },
    "schedules": {
        "type": "dict",
        "apply_defaults": True,
        "options": {
            "sync_status": {"type": "int", "default": 10},
            "configure_platform": {"type": "int", "default": 60},
        },
    },
    "variables": {"type": "dict", "default": {}},
    "event_source": {"type": "dict", "default": {}},
    "webhooks": {"type": "bool", "default": True},
}
CHECKER = ArgumentChecker("site file", noun="key")


class InvalidSiteFile(Exception):
    """The site has to correct its file; the text names the key of every mistake."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__(f"The site file cannot be used: {'; '.join(problems)}.")


@dataclass(frozen=True)
class Project:
    """The Git repository of the collection, which has its playbooks and rulebooks."""

    url: str
    branch: str
    credential: str | None = None


@dataclass(frozen=True)
class Images:
    """The two images, when to pull them, and the platform's credential for their registry."""

    execution_environment: str
    decision_environment: str
    pull: str
    credential: str | None = None


@dataclass(frozen=True)
class Hub:
    """The Secret with the kubeconfig of the hub, in the namespace of job pods, and where a job finds that file."""

    secret: str
    kubeconfig: str


@dataclass(frozen=True)
class Jobs:
    """The pods of jobs: namespace, account, further Secrets by the folder they are mounted at, and the platform's credential for it."""

    service_account: str
    secrets: Mapping[str, str]
    namespace: str | None = None
    credential: str | None = None


@dataclass(frozen=True)
class Site:
    """A validated site file. `given` is the file itself, without defaults."""

    address: str
    validate_certs: bool
    organization: str
    prefix: str
    project: Project
    images: Images
    hub: Hub
    jobs: Jobs
    schedules: Mapping[str, int]
    variables: Mapping[str, Any]
    event_source: Mapping[str, Any]
    webhooks: bool
    given: Mapping[str, Any]

    @property
    def site_namespace(self) -> str:
        """The site's own namespace on the hub, which has the ledger."""
        return str(self.variables.get("cluster_site_namespace", SITE_NAMESPACE))

    def name(self, what: str) -> str:
        """The name of an object: that of a playbook or of a thing, behind the prefix of the site."""
        return f"{self.prefix}-{what.replace('_', '-')}"


def read(file: Path) -> Any:
    """The content of a site file; InvalidSiteFile where it cannot be read."""
    try:
        return load(file.read_bytes())
    except OSError as error:
        raise InvalidSiteFile([f"{file} cannot be read ({error.strerror})"]) from None
    except BadYaml as error:
        raise InvalidSiteFile([f"{file} {error}"]) from None


def parse(given: Any, variables: Iterable[str]) -> Site:
    """The site in a site file; InvalidSiteFile names every mistake. `variables` are those of the playbooks."""
    if not isinstance(given, Mapping):
        raise InvalidSiteFile(["it must be a mapping of keys"])
    problems: list[str] = []
    values = CHECKER.check(read_options({"options": SITE}, problems), given, problems)
    if not problems:
        problems += _mistakes(values, set(variables))
    if problems:
        raise InvalidSiteFile(problems)
    parts = {
        "project": Project(**values["project"]),
        "images": Images(**values["images"]),
        "hub": Hub(**values["hub"]),
        "jobs": Jobs(**values["jobs"]),
    }
    return Site(**(values | parts | {"address": values["address"].rstrip("/"), "given": dict(given)}))


def _mistakes(values: Mapping[str, Any], variables: set[str]) -> list[str]:
    """What the types of the keys do not say."""
    problems = []
    if not re.match(r"https?://[^/]", values["address"]):
        problems.append(f"key address must be a URL, not {values['address']}")
    if not PREFIX.fullmatch(values["prefix"]):
        problems.append("key prefix must have at most 32 lower-case letters, digits and hyphens")
    if not PurePosixPath(values["hub"]["kubeconfig"]).is_absolute():
        problems.append("key hub.kubeconfig must be an absolute path: the path of the file in the pods of jobs")
    for secret, folder in values["jobs"]["secrets"].items():
        if not isinstance(folder, str) or not PurePosixPath(folder).is_absolute():
            problems.append(f"key jobs.secrets.{secret} must be an absolute path: the folder that the Secret is mounted at")
    for schedule, minutes in values["schedules"].items():
        if minutes < 1:
            problems.append(f"key schedules.{schedule} must be at least 1 minute")
    return problems + [mistake for name in values["variables"] for mistake in _unusable(name, variables)]


def _unusable(name: str, variables: set[str]) -> Iterator[str]:
    """Why a site cannot set a variable."""
    if name in SET_BY_PLATFORM:
        yield f"key variables.{name} is set by the platform or a credential: remove it"
    elif name not in variables:
        yield f"key variables.{name} is a variable of no playbook{did_you_mean(name, variables)}"
