# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What jobs run in and with: project, inventory, execution environment, container group, credentials."""

from __future__ import annotations

from pathlib import PurePosixPath

from ...common.third_party import yaml
from ...common.types import Object
from .secrets import Secrets
from .site import Site

# Where the job of configure_platform finds its secrets. The field of the credential and the variable have the same
# name.
PLATFORM_FIELDS = {
    "platform_token": "Token that may change this organization",
    "platform_engine_token": "Token with which the rulebook launches jobs",
    "platform_engine_kubeconfig": "Kubeconfig with which the rulebook watches the hub",
    "platform_webhook_token": "Token of the senders of webhooks",
}


def project(site: Site) -> Object:
    return {
        "name": site.name("collection"),
        "organization": site.organization,
        "scm_type": "git",
        "scm_url": site.project.url,
        "scm_branch": site.project.branch,
        "scm_clean": True,
        **({"credential": site.project.credential} if site.project.credential else {}),
    }


def inventory(site: Site) -> Object:
    """Without hosts: the playbooks use the implicit localhost, and add a host for each order."""
    return {"name": site.name("localhost"), "organization": site.organization, "description": "The pod of the job"}


def execution_environment(site: Site) -> Object:
    return {
        "name": site.name("jobs"),
        "organization": site.organization,
        "image": site.images.execution_environment,
        "pull": site.images.pull,
        **({"credential": site.images.credential} if site.images.credential else {}),
    }


def container_group(site: Site) -> Object:
    return {
        "name": site.name("jobs"),
        "is_container_group": True,
        "pod_spec_override": yaml.safe_dump(pod(site), sort_keys=False),
        **({"credential": site.jobs.credential} if site.jobs.credential else {}),
    }


def pod(site: Site) -> Object:
    """The pod of a job. The platform itself sets image and pull policy of the container `worker`, whatever is written here."""
    folders = {site.hub.secret: str(PurePosixPath(site.hub.kubeconfig).parent), **site.jobs.secrets}
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": site.jobs.namespace} if site.jobs.namespace else {},
        "spec": {
            "serviceAccountName": site.jobs.service_account,
            # Jobs reach the hub by the kubeconfig in the Secret, and nothing by the token of their pod.
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "worker",
                    "image": site.images.execution_environment,
                    "args": ["ansible-runner", "worker", "--private-data-dir=/runner"],
                    "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
                    "securityContext": restricted,
                    "volumeMounts": [{"name": secret, "mountPath": folder, "readOnly": True} for secret, folder in folders.items()],
                }
            ],
            "volumes": [{"name": secret, "secret": {"secretName": secret}} for secret in folders],
        },
    }


def credential_types(site: Site) -> list[Object]:
    path = {"id": "path", "type": "string", "label": "Path of the kubeconfig in the pod of a job"}
    secrets = [
        {"id": field, "type": "string", "label": label, "secret": True, "multiline": field.endswith("kubeconfig")}
        for field, label in PLATFORM_FIELDS.items()
    ]
    return [
        {
            "name": site.name("hub"),
            "description": "The hub, by a kubeconfig that the container group mounts",
            "kind": "cloud",
            "inputs": {"fields": [path], "required": ["path"]},
            "injectors": {"env": {"K8S_AUTH_KUBECONFIG": "{{ path }}"}},
        },
        {
            "name": site.name("platform"),
            "description": "The secrets of configure_platform",
            "kind": "cloud",
            "inputs": {"fields": secrets, "required": ["platform_token"]},
            "injectors": {"extra_vars": {field: f"{{{{ {field} }}}}" for field in PLATFORM_FIELDS}},
        },
    ]


def credentials(site: Site, secrets: Secrets) -> list[Object]:
    values = {
        "platform_token": secrets.token,
        "platform_engine_token": secrets.engine_token,
        "platform_engine_kubeconfig": secrets.engine_kubeconfig,
        "platform_webhook_token": secrets.webhook_token,
    }
    return [
        _credential("hub", site, {"path": site.hub.kubeconfig}),
        _credential("platform", site, {field: value for field, value in values.items() if value}),
    ]


def _credential(what: str, site: Site, inputs: Object) -> Object:
    return {
        "name": site.name(what),
        "organization": site.organization,
        "credential_type": site.name(what),
        "inputs": inputs,
    }
