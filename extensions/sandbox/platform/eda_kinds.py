"""The kinds of EDA's API, as AAP 2.5 has them."""

from __future__ import annotations

from .kinds import Field, Kind, flags, read_only, references, text

NAMED = (*text("name", required=True), *text("description"))
ORGANIZATION = Field("organization_id", None, required=True, to="organizations")
CREDENTIAL = references(eda_credential_id="eda-credentials")

KINDS = (
    Kind("organizations", "organization", "organization", (*NAMED,), unique=(("name",),), methods=("GET",)),
    Kind(
        "credential-types",
        "credential type",
        "credential type",
        (*NAMED, Field("inputs", {}), Field("injectors", {}), *read_only(kind="cloud", namespace=None, managed=False)),
        unique=(("name",),),
    ),
    Kind(
        "eda-credentials",
        "eda credential",
        "eda credential",
        (
            *NAMED,
            Field("inputs", {}),
            Field("credential_type_id", None, required=True, to="credential-types"),
            ORGANIZATION,
            *read_only(managed=False),
        ),
        unique=(("name",),),
    ),
    Kind(
        "projects",
        "project",
        "project",
        (
            *NAMED,
            *text("url", required=True),
            *text("scm_branch", "scm_refspec", "proxy"),
            *flags("verify_ssl", default=True),
            *CREDENTIAL,
            *references(signature_validation_credential_id="eda-credentials"),
            ORGANIZATION,
            *read_only(import_state="pending", import_error=None, git_hash="", scm_type="git"),
        ),
        unique=(("name",),),
        actions=("sync",),
    ),
    Kind(
        "rulebooks",
        "rulebook",
        "rulebook",
        (*NAMED, Field("project_id", None, to="projects", cascade=True), ORGANIZATION, Field("rulesets", "")),
        methods=("GET",),
        actions=("sources",),
    ),
    Kind(
        "decision-environments",
        "decision environment",
        "decision environment",
        (
            *NAMED,
            *text("image_url", required=True),
            Field("pull_policy", "always", choices=("always", "missing", "never")),
            *CREDENTIAL,
            ORGANIZATION,
        ),
        unique=(("name",),),
    ),
    Kind(
        "event-streams",
        "event stream",
        "event stream",
        (
            *text("name", required=True),
            *flags("test_mode"),
            *text("additional_data_headers"),
            Field("eda_credential_id", None, required=True, to="eda-credentials"),
            ORGANIZATION,
            *read_only(event_stream_type="", uuid="", url="", owner="", events_received=0),
        ),
        unique=(("name",),),
    ),
    Kind(
        "activations",
        "activation",
        "activation",
        (
            *NAMED,
            *flags("is_enabled", default=True),
            Field("decision_environment_id", None, required=True, to="decision-environments"),
            Field("rulebook_id", None, required=True, to="rulebooks"),
            Field("extra_var", None),
            ORGANIZATION,
            Field("restart_policy", "on-failure", choices=("always", "on-failure", "never")),
            Field("log_level", "error", choices=("debug", "info", "error")),
            Field("awx_token_id", None, to="awx-tokens"),
            Field("eda_credentials", []),
            Field("k8s_service_name", None),
            *text("source_mappings"),
            *flags("skip_audit_events", "swap_single_source", "restart_on_project_update", "enable_persistence"),
            *read_only(status="stopped", status_message="", restart_count=0, git_hash="", current_job_id=None),
            Field("project_id", None, read_only=True, to="projects"),
            *read_only(rulebook_name="", instances=None),
        ),
        unique=(("name",),),
        actions=("enable", "disable", "restart", "instances"),
    ),
    Kind(
        "awx-tokens",
        "awx token",
        "controller token",
        (*NAMED, Field("token", "", required=True, shown=False)),
        unique=(("name",),),
    ),
)


def _fields(plain: tuple[str, ...], secret: tuple[str, ...]) -> dict[str, object]:
    fields = [{"id": name, "label": name, "type": "string"} for name in plain]
    return {"fields": fields + [{"id": name, "label": name, "type": "string", "secret": True} for name in secret]}


# The credential types that come with EDA, as far as documents use them: name, kind, inputs.
MANAGED_CREDENTIAL_TYPES = (
    ("Red Hat Ansible Automation Platform", "cloud", _fields(("host", "username", "verify_ssl"), ("password", "oauth_token"))),
    ("Source Control", "scm", _fields(("username",), ("password", "ssh_key_data", "ssh_key_unlock"))),
    ("Container Registry", "registry", _fields(("host", "username", "verify_ssl"), ("password",))),
    ("Vault", "vault", _fields(("vault_id",), ("vault_password",))),
    ("Basic Event Stream", "basic", _fields(("auth_type", "username"), ("password",))),
    ("Token Event Stream", "token", _fields(("auth_type", "http_header_key"), ("token",))),
    (
        "HMAC Event Stream",
        "hmac",
        _fields(("auth_type", "http_header_key", "hash_algorithm", "signature_encoding", "signature_prefix"), ("secret",)),
    ),
)
