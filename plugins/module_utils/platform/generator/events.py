# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of Event-Driven Ansible: project, decision environment, credentials, event stream, rulebook activations."""

from __future__ import annotations

from ...common.types import Object
from .facts import CollectionFacts
from .job_templates import renamed
from .secrets import Secrets
from .site import Site

ENGINE, WEBHOOKS = "cluster_fulfillment_aap", "cluster_webhooks_aap"
PLATFORM_TYPE, STREAM_TYPE = "Red Hat Ansible Automation Platform", "Token Event Stream"


def project(site: Site) -> Object:
    return {
        "name": site.name("collection"),
        "organization": site.organization,
        "url": site.project.url,
        "scm_branch": site.project.branch,
        **({"credential": site.project.credential} if site.project.credential else {}),
    }


def decision_environment(site: Site) -> Object:
    return {
        "name": site.name("engine"),
        "organization": site.organization,
        "image_url": site.images.decision_environment,
        **({"credential": site.images.credential} if site.images.credential else {}),
    }


def credential_types(site: Site) -> list[Object]:
    """The pods of activations mount no Secret of ours: the kubeconfig is in the credential, and becomes a file there."""
    field = {"id": "kubeconfig", "type": "string", "label": "Kubeconfig", "secret": True, "multiline": True}
    return [
        {
            "name": site.name("hub"),
            "description": "The hub, by a kubeconfig",
            "inputs": {"fields": [field], "required": ["kubeconfig"]},
            "injectors": {
                "file": {"template.kubeconfig": "{{ kubeconfig }}"},
                "extra_vars": {"hub_kubeconfig": "{{ eda.filename.kubeconfig }}"},
            },
        }
    ]


def credentials(site: Site, secrets: Secrets) -> list[Object]:
    engine = [
        _credential("hub", site.name("hub"), site, {"kubeconfig": secrets.engine_kubeconfig}),
        _credential(
            "engine",
            PLATFORM_TYPE,
            site,
            {"host": f"{site.address}/api/controller/", "oauth_token": secrets.engine_token, "verify_ssl": site.validate_certs},
        ),
    ]
    if not site.webhooks:
        return engine
    token = {"auth_type": "token", "http_header_key": "Authorization", "token": secrets.webhook_token}
    return [*engine, _credential("webhooks", STREAM_TYPE, site, token)]


def event_streams(site: Site) -> list[Object]:
    stream = {
        "name": site.name("webhooks"),
        "organization": site.organization,
        "credential_name": site.name("webhooks"),
        "forward_events": True,
    }
    return [stream] if site.webhooks else []


def activations(facts: CollectionFacts, site: Site) -> list[Object]:
    engine = _activation(ENGINE, "cluster_fulfillment", ["hub", "engine"], facts, site)
    if not site.webhooks:
        return [engine]
    # An event stream replaces a whole source. The engine's source watches the hub, so webhooks have a rulebook of their
    # own.
    (source,) = facts.rulebooks[WEBHOOKS].sources
    stream = {"event_streams": [{"event_stream": site.name("webhooks"), "source_name": source}]}
    return [engine, _activation(WEBHOOKS, "webhooks", ["engine"], facts, site) | stream]


def _activation(rulebook: str, name: str, used: list[str], facts: CollectionFacts, site: Site) -> Object:
    taken = facts.rulebooks[rulebook].variables
    offered = {**site.variables, "organization": site.organization}
    variables = {key: value for key, value in offered.items() if key in taken} | renamed(facts, rulebook, site)
    if "event_source" in taken and site.event_source:
        variables["event_source"] = dict(site.event_source)
    return {
        "name": site.name(name),
        "organization": site.organization,
        "project": site.name("collection"),
        "rulebook": f"{rulebook}.yml",
        "decision_environment": site.name("engine"),
        "restart_policy": "always",
        "extra_vars": variables,
        "eda_credentials": [site.name(each) for each in used],
        "enabled": True,
    }


def _credential(what: str, kind: str, site: Site, inputs: Object) -> Object:
    return {"name": site.name(what), "organization": site.organization, "credential_type": kind, "inputs": inputs}
