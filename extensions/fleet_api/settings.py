"""The settings of the service: a YAML file, and FLEET_API_* variables for what differs between environments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...plugins.module_utils.common.argument_specs import DEFAULT_GROUP
from ...plugins.module_utils.fleet.schedule import HUB_TIMEOUT, Weights
from ...plugins.module_utils.orders.model import Names

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
VARIABLES = {
    "FLEET_API_HOST": "host",
    "FLEET_API_PORT": "port",
    "FLEET_API_HEALTH_PORT": "health_port",
    "FLEET_API_KUBECONFIG": "kubeconfig",
}

Seconds = Annotated[float, Field(gt=0, le=86400)]


class BadSettings(Exception):
    """The settings cannot be used; the message names the key."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Issuer(_Strict):
    """An issuer of JSON Web Tokens. The claims and prefixes are those of the options --oidc-* of kube-apiserver."""

    url: str
    audiences: Annotated[list[str], Field(min_length=1)]
    algorithms: Annotated[list[Algorithm], Field(min_length=1)] = ["RS256"]
    jwks_uri: str = ""  # without it, that of /.well-known/openid-configuration
    ca_file: str = ""
    username_claim: str = "sub"
    username_prefix: str
    groups_claim: str = ""
    groups_prefix: str = ""
    leeway: Annotated[float, Field(ge=0, le=300)] = 30
    keys_seconds: Seconds = 3600  # after which the keys are read again
    refresh_seconds: Seconds = 10  # between two reads because of an unknown key

    @model_validator(mode="after")
    def _check(self) -> Issuer:
        for name, address in (("url", self.url), ("jwks_uri", self.jwks_uri or self.url)):
            parts = urlsplit(address)
            if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
                raise ValueError(f"{name} is an address that begins with https://")
        if self.username_prefix.startswith("system:") or self.groups_prefix.startswith("system:"):
            raise ValueError("username_prefix and groups_prefix do not begin with system:, whose names are those of Kubernetes")
        if self.groups_claim and not self.groups_prefix:
            raise ValueError("groups_claim needs a groups_prefix, so that no claim names a group of Kubernetes")
        return self


class Login(_Strict):
    """How the page gets a token: the code flow with PKCE, as a public client of an issuer."""

    issuer: str  # the url of one of the issuers
    client_id: Annotated[str, Field(min_length=1)]
    scope: str = "openid"
    resource: str = ""  # RFC 8707: the API that the token is for, where the issuer wants it
    bearer: Literal["access_token", "id_token"] = "access_token"  # which of the issuer's tokens is sent to the API


class Tls(_Strict):
    certfile: str
    keyfile: str


class SingleHub(_Strict):
    """A hub without a fleet: its orders are the clusters, and what only a fleet has is not found."""

    api_group: str = DEFAULT_GROUP
    controller: Literal["self", "external"] = "self"  # of orders, as in the settings of the engine
    collections_paths: list[str] = []  # folders with ansible_collections, where the templates are

    @property
    def names(self) -> Names:
        return Names(self.api_group, self.controller == "external")


class Limits(_Strict):
    """What a client may use."""

    requests_per_second: Annotated[float, Field(gt=0)] = 20  # of one user on one replica
    burst: Annotated[int, Field(ge=1)] = 60
    body_bytes: Annotated[int, Field(ge=1024)] = 262144
    header_bytes: Annotated[int, Field(ge=4096)] = 32768
    concurrency: Annotated[int, Field(ge=1)] = 1000
    streams_per_user: Annotated[int, Field(ge=1)] = 20
    header_seconds: Seconds = 10
    request_seconds: Seconds = 30


class Watch(_Strict):
    """Event streams."""

    heartbeat_seconds: Seconds = 15
    stream_seconds: Seconds = 3600
    queued_events: Annotated[int, Field(ge=1)] = 1000  # after which a slow client is disconnected
    send_seconds: Seconds = 30  # the same for a client that reads nothing
    deletions: Annotated[int, Field(ge=1)] = 10000  # that are remembered for clients that reconnect


class Cached(_Strict):
    """For how long answers of the home cluster are used."""

    token_seconds: Annotated[float, Field(ge=0, le=60)] = 10
    access_seconds: Annotated[float, Field(ge=0, le=60)] = 5


class ScoreWeights(_Strict):
    """How much each score counts."""

    headroom: Annotated[int, Field(ge=0)] = Weights.headroom
    spread: Annotated[int, Field(ge=0)] = Weights.spread
    affinity: Annotated[int, Field(ge=0)] = Weights.affinity
    region: Annotated[int, Field(ge=0)] = Weights.region


class Scheduling(_Strict):
    """The arguments of the event source `fleet` with these names, so that a plan has the result of the engine."""

    hub_timeout: Annotated[int, Field(ge=1)] = int(HUB_TIMEOUT.total_seconds())
    weights: ScoreWeights = ScoreWeights()


class Settings(_Strict):
    """All settings."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    health_host: str = "127.0.0.1"
    health_port: Annotated[int, Field(ge=0, le=65535)] = 8081  # of /healthz, /readyz and /metrics
    kubeconfig: str = ""  # without it, that of the environment or of the Pod
    site_namespace: str = "openfleet-system"
    token_audiences: list[str] = []  # of tokens of the home cluster; empty for those of its API server
    issuers: list[Issuer] = []
    login: Login | None = None  # without it, users of the page enter a token
    tls: Tls | None = None
    single_hub: SingleHub | None = None  # without it, a fleet
    limits: Limits = Limits()
    watch: Watch = Watch()
    cached: Cached = Cached()
    scheduling: Scheduling = Scheduling()
    kubeconfig_seconds: Annotated[float, Field(gt=0, le=120)] = 30  # until the hub has to answer

    @model_validator(mode="after")
    def _check(self) -> Settings:
        urls = [issuer.url for issuer in self.issuers]
        if len({*urls}) < len(urls):
            raise ValueError("issuers have different urls")
        if self.login and self.login.issuer not in urls:
            raise ValueError("login.issuer is the url of one of the issuers")
        return self


def load(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """The settings of the file, and of the environment before it."""
    content: Any = {}
    if path:
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise BadSettings(f"The settings {path} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise BadSettings(f"The settings {path} are not a mapping of keys to values.")
    given = {key: environment[name] for name, key in VARIABLES.items() if environment.get(name)}
    try:
        return Settings.model_validate(content | given)
    except ValidationError as error:
        # Without the values: one of them may be a secret in the wrong place.
        found = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'settings'}: {each['msg']}" for each in error.errors())
        raise BadSettings(f"The settings are invalid: {found}.") from None
