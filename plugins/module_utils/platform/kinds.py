# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kinds of objects that a document can have, with the names of infra.aap_configuration. A table; it decides nothing."""

from __future__ import annotations

from .model import Association, Field, Kind, Reference

ORGANIZATIONS = "aap_organizations"
TEMPLATES, WORKFLOWS, PROJECTS, SOURCES = (
    "controller_templates",
    "controller_workflows",
    "controller_projects",
    "controller_inventory_sources",
)
CREDENTIALS, CREDENTIAL_TYPES = "controller_credentials", "controller_credential_types"
ENVIRONMENTS, INSTANCE_GROUPS, INVENTORIES = "controller_execution_environments", "controller_instance_groups", "controller_inventories"
LABELS, NOTIFICATIONS, SCHEDULES, ROLES = "controller_labels", "controller_notifications", "controller_schedules", "controller_roles"
EDA_CREDENTIALS, EDA_CREDENTIAL_TYPES, EDA_PROJECTS = "eda_credentials", "eda_credential_types", "eda_projects"
DECISION_ENVIRONMENTS, EVENT_STREAMS, ACTIVATIONS = "eda_decision_environments", "eda_event_streams", "eda_rulebook_activations"
# Kinds that documents refer to and never have.
EDA_ORGANIZATIONS, RULEBOOKS, EDA_TOKENS = "organizations of EDA", "rulebooks of EDA", "controller tokens of EDA"
SYSTEM_TEMPLATES, USERS, TEAMS = "system job templates", "users", "teams"

# What can be launched: by a schedule, or by the node of a workflow.
LAUNCHED = (TEMPLATES, WORKFLOWS, PROJECTS, SOURCES, SYSTEM_TEMPLATES)
# What a role can be granted on: the field in controller_roles, and its kind.
ROLE_TARGETS = {
    "organizations": ORGANIZATIONS,
    "projects": PROJECTS,
    "inventories": INVENTORIES,
    "job_templates": TEMPLATES,
    "workflows": WORKFLOWS,
    "credentials": CREDENTIALS,
    "instance_groups": INSTANCE_GROUPS,
    "target_teams": TEAMS,
}


def _plain(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name) for name in names)


def _asked(*names: str) -> tuple[Field, ...]:
    """What can be asked for at launch. Two of these have a short name in older documents."""
    short = {"tags": ("ask_tags",), "skip_tags": ("ask_skip_tags",)}
    return tuple(Field(f"ask_{name}_on_launch", aliases=short.get(name, ())) for name in names)


def _notifications(*events: str, deferred: bool = False) -> tuple[Association, ...]:
    return tuple(Association(f"notification_templates_{event}", NOTIFICATIONS, "filter", deferred=deferred) for event in events)


DESCRIPTION = Field("description")
ORGANIZATION = Reference("organization", (ORGANIZATIONS,))
EDA_ORGANIZATION = Reference("organization", (EDA_ORGANIZATIONS,), "organization_id", ("organization_name",))
EDA_CREDENTIAL = Reference("credential", (EDA_CREDENTIALS,), "eda_credential_id", ("eda_credential", "credential_name"))
ENVIRONMENT = Reference("execution_environment", (ENVIRONMENTS,))
INVENTORY = Reference("inventory", (INVENTORIES,))
GROUPS = Association("instance_groups", INSTANCE_GROUPS, "filter")
LABEL_LIST = Association("labels", LABELS, "summary")
# What a schedule, or the node of a workflow, sets for what it launches.
PROMPTS = (
    Field("extra_data"),
    *_plain("scm_branch", "job_type", "job_tags", "skip_tags", "limit", "diff_mode", "verbosity", "forks", "job_slice_count", "timeout"),
)

_CONTROLLER = (
    Kind(
        ORGANIZATIONS,
        "organization",
        "controller",
        "organizations",
        fields=(DESCRIPTION, Field("max_hosts")),
        references=(Reference("default_environment", (ENVIRONMENTS,), deferred=True),),
        associations=(
            Association("galaxy_credentials", CREDENTIALS, "filter", deferred=True),
            Association("instance_groups", INSTANCE_GROUPS, "filter", deferred=True),
            *_notifications("started", "success", "error", "approvals", deferred=True),
        ),
    ),
    Kind(
        CREDENTIAL_TYPES,
        "credential type",
        "controller",
        "credential_types",
        fields=(DESCRIPTION, *_plain("kind", "inputs", "injectors")),
    ),
    Kind(
        CREDENTIALS,
        "credential",
        "controller",
        "credentials",
        scope="organization",
        fields=(DESCRIPTION, Field("inputs")),
        references=(ORGANIZATION, Reference("credential_type", (CREDENTIAL_TYPES,))),
        secrets="inputs",
        ignored=("update_secrets",),
        required=("credential_type", "organization"),
    ),
    Kind(
        ENVIRONMENTS,
        "execution environment",
        "controller",
        "execution_environments",
        scope="organization",
        unique=True,
        fields=(DESCRIPTION, *_plain("image", "pull")),
        references=(ORGANIZATION, Reference("credential", (CREDENTIALS,))),
        required=("image",),
    ),
    Kind(
        INSTANCE_GROUPS,
        "instance group",
        "controller",
        "instance_groups",
        fields=(
            *_plain("max_concurrent_jobs", "max_forks", "is_container_group", "policy_instance_percentage", "policy_instance_minimum"),
            Field("policy_instance_list"),
            Field("pod_spec_override", form="yaml"),
        ),
        references=(Reference("credential", (CREDENTIALS,)),),
    ),
    Kind(
        PROJECTS,
        "project",
        "controller",
        PROJECTS.removeprefix("controller_"),
        scope="organization",
        fields=(
            DESCRIPTION,
            *_plain("scm_type", "scm_url", "scm_branch", "scm_refspec", "scm_clean", "scm_delete_on_update", "scm_track_submodules"),
            *_plain("scm_update_on_launch", "scm_update_cache_timeout", "allow_override", "local_path"),
            Field("timeout", aliases=("job_timeout",)),
        ),
        references=(
            ORGANIZATION,
            Reference("credential", (CREDENTIALS,), aliases=("scm_credential",)),
            Reference("signature_validation_credential", (CREDENTIALS,)),
            Reference("default_environment", (ENVIRONMENTS,)),
        ),
        associations=_notifications("started", "success", "error"),
        ignored=("wait", "update_project", "interval"),
        required=("organization",),
    ),
    Kind(
        INVENTORIES,
        "inventory",
        "controller",
        "inventories",
        scope="organization",
        fields=(DESCRIPTION, *_plain("kind", "host_filter", "prevent_instance_group_fallback"), Field("variables", form="variables")),
        references=(ORGANIZATION,),
        associations=(GROUPS,),
        required=("organization",),
    ),
    Kind(
        SOURCES,
        "inventory source",
        "controller",
        "inventory_sources",
        scope="inventory",
        fields=(
            DESCRIPTION,
            *_plain("source", "source_path", "enabled_var", "enabled_value", "host_filter", "limit", "overwrite", "overwrite_vars"),
            *_plain("timeout", "verbosity", "update_on_launch", "update_cache_timeout", "scm_branch"),
            Field("source_vars", form="variables"),
        ),
        references=(
            Reference("organization", (ORGANIZATIONS,), lookup=True),
            INVENTORY,
            Reference("credential", (CREDENTIALS,)),
            Reference("source_project", (PROJECTS,)),
            ENVIRONMENT,
        ),
        associations=_notifications("started", "success", "error"),
        required=("inventory", "source"),
    ),
    Kind(
        TEMPLATES,
        "job template",
        "controller",
        "job_templates",
        scope="organization",
        fields=(
            DESCRIPTION,
            *_plain("job_type", "playbook", "forks", "limit", "verbosity", "job_tags", "force_handlers", "skip_tags", "start_at_task"),
            *_plain("timeout", "use_fact_cache", "become_enabled", "diff_mode", "allow_simultaneous", "job_slice_count", "scm_branch"),
            *_plain("host_config_key", "webhook_service", "prevent_instance_group_fallback", "survey_enabled"),
            Field("extra_vars", form="variables"),
            *_asked("scm_branch", "diff_mode", "variables", "limit", "tags", "skip_tags", "job_type", "verbosity", "inventory"),
            *_asked("credential", "execution_environment", "labels", "forks", "job_slice_count", "timeout", "instance_groups"),
        ),
        references=(
            # The API takes it from the project.
            Reference("organization", (ORGANIZATIONS,), lookup=True),
            INVENTORY,
            Reference("project", (PROJECTS,)),
            ENVIRONMENT,
            Reference("webhook_credential", (CREDENTIALS,)),
        ),
        associations=(
            Association("credentials", CREDENTIALS, "summary"),
            LABEL_LIST,
            GROUPS,
            *_notifications("started", "success", "error"),
        ),
        survey=True,
        required=("project", "playbook"),
    ),
    Kind(
        WORKFLOWS,
        "workflow template",
        "controller",
        "workflow_job_templates",
        scope="organization",
        fields=(
            DESCRIPTION,
            *_plain("allow_simultaneous", "limit", "scm_branch", "job_tags", "skip_tags", "webhook_service", "survey_enabled"),
            Field("extra_vars", form="variables"),
            *_asked("variables", "inventory", "limit", "scm_branch", "labels", "tags", "skip_tags"),
        ),
        references=(ORGANIZATION, INVENTORY, Reference("webhook_credential", (CREDENTIALS,))),
        associations=(LABEL_LIST, *_notifications("started", "success", "error", "approvals")),
        survey=True,
        nodes=True,
        ignored=("destroy_current_nodes", "destroy_current_schema"),
        required=("organization",),
    ),
    Kind(
        SCHEDULES,
        "schedule",
        "controller",
        "schedules",
        scope="unified_job_template",
        fields=(DESCRIPTION, Field("rrule"), Field("enabled"), *PROMPTS),
        references=(
            Reference("organization", (ORGANIZATIONS,), lookup=True),
            Reference("unified_job_template", LAUNCHED),
            INVENTORY,
            ENVIRONMENT,
        ),
        associations=(Association("credentials", CREDENTIALS, "filter"), Association("labels", LABELS, "filter"), GROUPS),
        required=("unified_job_template", "rrule"),
    ),
    # The API deletes a label with its last use, and has no other way to.
    Kind(
        LABELS,
        "label",
        "controller",
        "labels",
        scope="organization",
        references=(ORGANIZATION,),
        required=("organization",),
        deletable=False,
    ),
    Kind(
        NOTIFICATIONS,
        "notification template",
        "controller",
        "notification_templates",
        scope="organization",
        fields=(DESCRIPTION, *_plain("notification_type", "notification_configuration", "messages")),
        references=(ORGANIZATION,),
        secrets="notification_configuration",
        required=("organization", "notification_type"),
    ),
)

_EDA = (
    Kind(EDA_CREDENTIAL_TYPES, "credential type of EDA", "eda", "credential-types", fields=(DESCRIPTION, *_plain("inputs", "injectors"))),
    Kind(
        EDA_CREDENTIALS,
        "credential of EDA",
        "eda",
        "eda-credentials",
        scope="organization",
        unique=True,
        fields=(DESCRIPTION, Field("inputs")),
        references=(
            EDA_ORGANIZATION,
            Reference("credential_type", (EDA_CREDENTIAL_TYPES,), "credential_type_id", ("credential_type_name",)),
        ),
        secrets="inputs",
        required=("credential_type", "organization"),
    ),
    Kind(
        EDA_PROJECTS,
        "project of EDA",
        "eda",
        "projects",
        scope="organization",
        unique=True,
        fields=(DESCRIPTION, Field("url", aliases=("scm_url",)), *_plain("scm_branch", "scm_refspec", "verify_ssl", "proxy")),
        references=(
            EDA_ORGANIZATION,
            EDA_CREDENTIAL,
            Reference("signature_validation_credential", (EDA_CREDENTIALS,), "signature_validation_credential_id"),
        ),
        ignored=("sync",),
        required=("organization", "url"),
    ),
    Kind(
        DECISION_ENVIRONMENTS,
        "decision environment",
        "eda",
        "decision-environments",
        scope="organization",
        unique=True,
        fields=(DESCRIPTION, *_plain("image_url", "pull_policy")),
        references=(EDA_ORGANIZATION, EDA_CREDENTIAL),
        required=("organization", "image_url"),
    ),
    Kind(
        EVENT_STREAMS,
        "event stream",
        "eda",
        "event-streams",
        scope="organization",
        unique=True,
        fields=(Field("headers", "additional_data_headers"), Field("forward_events", "test_mode", "inverted")),
        references=(EDA_ORGANIZATION, Reference("credential_name", (EDA_CREDENTIALS,), "eda_credential_id", ("credential",))),
        required=("organization", "credential_name"),
    ),
    Kind(
        ACTIVATIONS,
        "rulebook activation",
        "eda",
        "activations",
        scope="organization",
        unique=True,
        fields=(
            DESCRIPTION,
            Field("enabled", "is_enabled"),
            *_plain("restart_policy", "log_level", "k8s_service_name", "swap_single_source", "restart_on_project_update"),
            *_plain("enable_persistence", "skip_audit_events"),
            Field("extra_vars", "extra_var", "variables"),
        ),
        references=(
            EDA_ORGANIZATION,
            Reference("project", (EDA_PROJECTS,), "project_id", ("project_name",)),
            Reference("rulebook", (RULEBOOKS,), "rulebook_id", ("rulebook_name",)),
            Reference("decision_environment", (DECISION_ENVIRONMENTS,), "decision_environment_id", ("decision_environment_name",)),
            Reference("awx_token", (EDA_TOKENS,), "awx_token_id", ("awx_token_name", "token")),
        ),
        associations=(Association("eda_credentials", EDA_CREDENTIALS, "embedded", aliases=("credentials",)),),
        ignored=("restart",),
        required=("organization", "project", "rulebook", "decision_environment"),
    ),
)

_REFERENCED = (
    Kind(EDA_ORGANIZATIONS, "organization", "eda", "organizations", read_only=True),
    Kind(RULEBOOKS, "rulebook", "eda", "rulebooks", read_only=True),
    Kind(EDA_TOKENS, "controller token of EDA", "eda", "users/me/awx-tokens", read_only=True),
    Kind(SYSTEM_TEMPLATES, "system job template", "controller", "system_job_templates", read_only=True),
    Kind(USERS, "user", "controller", "users", name_field="username", read_only=True),
    Kind(TEAMS, "team", "controller", "teams", scope="organization", references=(ORGANIZATION,), read_only=True),
)

KINDS: dict[str, Kind] = {kind.key: kind for kind in (*_CONTROLLER, *_EDA, *_REFERENCED)}
# The keys of a document; controller_roles are grants on objects, not objects.
DOCUMENT_KEYS = (*(kind.key for kind in (*_CONTROLLER, *_EDA)), ROLES)
