"""The kinds of the controller's API, as AWX 24.6.1 has them: the fields that clients set or compare."""

from __future__ import annotations

from .kinds import Field, Kind, flags, numbers, owner, read_only, references, text

NAMED = (*text("name", required=True), *text("description"))
TEMPLATES, JOBS = "unified_job_templates", "unified_jobs"
NOTIFIED = {f"notification_templates_{moment}": "notification_templates" for moment in ("started", "success", "error")}
PROMPTS = ("variables", "limit", "tags", "skip_tags", "inventory", "labels", "scm_branch")
JOB_PROMPTS = (
    *PROMPTS,
    *("diff_mode", "job_type", "verbosity", "credential", "execution_environment", "forks", "job_slice_count", "timeout"),
    "instance_groups",
)
EXTRA_VARS = Field("extra_vars", "", as_text=True)
JOB_TYPE = Field("job_type", "run", choices=("run", "check"))
# What a prompt may override in a node of a workflow or in a schedule; null means not overridden.
OVERRIDES = (
    Field("extra_data", {}),
    *references(inventory="inventories", execution_environment="execution_environments"),
    *(Field(name, None) for name in ("scm_branch", "job_type", "job_tags", "skip_tags", "limit")),
    *(Field(name, None) for name in ("diff_mode", "verbosity", "forks", "job_slice_count", "timeout")),
)
OVERRIDE_LINKS = {"credentials": "credentials", "labels": "labels", "instance_groups": "instance_groups"}
STATE = read_only(status="never updated", last_job_run=None, last_job_failed=False, next_job_run=None)
RUN = (
    *NAMED,
    *read_only(status="pending", failed=False, started=None, finished=None, elapsed=0.0, job_explanation="", launch_type="manual"),
    *read_only(canceled_on=None, result_traceback="", event_processing_finished=False),
)

KINDS = (
    Kind(
        "organizations",
        "organization",
        "Organization",
        (*NAMED, *numbers(max_hosts=0), *references(default_environment="execution_environments")),
        unique=(("name",),),
        links={
            **NOTIFIED,
            "galaxy_credentials": "credentials",
            "instance_groups": "instance_groups",
            "notification_templates_approvals": "notification_templates",
            "users": "users",
            "admins": "users",
        },
        children={
            "projects": ("projects", "organization"),
            "inventories": ("inventories", "organization"),
            "job_templates": ("job_templates", "organization"),
            "workflow_job_templates": ("workflow_job_templates", "organization"),
            "teams": ("teams", "organization"),
            "credentials": ("credentials", "organization"),
            "execution_environments": ("execution_environments", "organization"),
            "notification_templates": ("notification_templates", "organization"),
        },
        roles=(
            *("admin", "execute", "project_admin", "inventory_admin", "credential_admin", "workflow_admin", "notification_admin"),
            *("job_template_admin", "execution_environment_admin", "auditor", "member", "read", "approval"),
        ),
    ),
    Kind(
        "users",
        "user",
        "User",
        (
            *text("username", required=True),
            *text("first_name", "last_name", "email"),
            *flags("is_superuser", "is_system_auditor"),
            Field("password", ""),
        ),
        unique=(("username",),),
        links={"roles": "roles"},
        actions=("personal_tokens",),
    ),
    Kind(
        "teams",
        "team",
        "Team",
        (*NAMED, owner("organization", "organizations")),
        unique=(("organization", "name"),),
        links={"users": "users", "roles": "roles"},
        roles=("admin", "member", "read"),
    ),
    Kind(
        "credential_types",
        "credential_type",
        "Credential type",
        (
            *NAMED,
            Field("kind", "cloud", required=True, choices=("cloud", "net")),
            *read_only(namespace=None, managed=False),
            Field("inputs", {}),
            Field("injectors", {}),
        ),
        unique=(("name", "kind"),),
    ),
    Kind(
        "credentials",
        "credential",
        "Credential",
        (
            *NAMED,
            *references(organization="organizations"),
            Field("credential_type", None, required=True, to="credential_types"),
            *read_only(managed=False),
            Field("inputs", {}),
            Field("user", None, to="users", shown=False),
            Field("team", None, to="teams", shown=False),
        ),
        unique=(("organization", "name", "credential_type"),),
        roles=("admin", "use", "read"),
    ),
    Kind(
        "execution_environments",
        "execution_environment",
        "Execution environment",
        (
            *NAMED,
            *references(organization="organizations", credential="credentials"),
            *text("image", required=True),
            Field("pull", "", choices=("", "always", "missing", "never")),
            *read_only(managed=False),
        ),
        unique=(("name",),),
    ),
    Kind(
        "instance_groups",
        "instance_group",
        "Instance group",
        (
            *text("name", required=True),
            *numbers(max_concurrent_jobs=0, max_forks=0, policy_instance_percentage=0, policy_instance_minimum=0),
            *flags("is_container_group"),
            *references(credential="credentials"),
            Field("policy_instance_list", []),
            Field("pod_spec_override", "", as_text=True),
        ),
        unique=(("name",),),
        roles=("admin", "use", "read"),
    ),
    Kind(
        "projects",
        "project",
        "Project",
        (
            *NAMED,
            *references(organization="organizations", credential="credentials", default_environment="execution_environments"),
            *references(signature_validation_credential="credentials"),
            *text("local_path", "scm_branch", "scm_refspec", "scm_url"),
            Field("scm_type", "", choices=("", "git", "svn", "insights", "archive")),
            *flags("scm_clean", "scm_track_submodules", "scm_delete_on_update", "scm_update_on_launch", "allow_override"),
            *numbers(timeout=0, scm_update_cache_timeout=0),
            *read_only(scm_revision=""),
            *STATE,
        ),
        unique=(("organization", "name"),),
        table=TEMPLATES,
        links=NOTIFIED,
        children={"schedules": ("schedules", "unified_job_template"), "project_updates": ("project_updates", "project")},
        actions=("update", "playbooks"),
        roles=("admin", "use", "update", "read"),
    ),
    Kind(
        "inventories",
        "inventory",
        "Inventory",
        (
            *NAMED,
            owner("organization", "organizations"),
            Field("kind", "", choices=("", "smart", "constructed")),
            Field("host_filter", None),
            Field("variables", "", as_text=True),
            *flags("prevent_instance_group_fallback"),
            *read_only(pending_deletion=False, has_inventory_sources=False, total_hosts=0),
        ),
        unique=(("name", "organization"),),
        links={"instance_groups": "instance_groups", "labels": "labels"},
        children={"inventory_sources": ("inventory_sources", "inventory"), "hosts": ("hosts", "inventory")},
        roles=("admin", "use", "adhoc", "update", "read"),
    ),
    Kind(
        "hosts",
        "host",
        "Host",
        (*NAMED, owner("inventory", "inventories"), *flags("enabled", default=True), Field("variables", "", as_text=True)),
        unique=(("name", "inventory"),),
    ),
    Kind(
        "inventory_sources",
        "inventory_source",
        "Inventory source",
        (
            *NAMED,
            owner("inventory", "inventories"),
            Field("source", None, required=True, choices=("file", "scm", "ec2", "openstack", "controller", "constructed", "rhv")),
            *text("source_path", "scm_branch", "enabled_var", "enabled_value", "host_filter", "limit"),
            Field("source_vars", "", as_text=True),
            *references(source_project="projects", credential="credentials", execution_environment="execution_environments"),
            *flags("overwrite", "overwrite_vars", "update_on_launch"),
            *numbers(timeout=0, verbosity=1, update_cache_timeout=0),
            *STATE,
        ),
        unique=(("inventory", "name"),),
        table=TEMPLATES,
        links={**NOTIFIED, "credentials": "credentials"},
        children={"schedules": ("schedules", "unified_job_template"), "inventory_updates": ("inventory_updates", "inventory_source")},
        actions=("update",),
    ),
    Kind(
        "job_templates",
        "job_template",
        "Job template",
        (
            *NAMED,
            Field("organization", None, read_only=True, to="organizations"),
            JOB_TYPE,
            *references(inventory="inventories", project="projects", execution_environment="execution_environments"),
            *text("playbook", "scm_branch", "limit", "job_tags", "skip_tags", "start_at_task", "host_config_key"),
            EXTRA_VARS,
            *numbers(forks=0, verbosity=0, timeout=0, job_slice_count=1),
            *flags("force_handlers", "use_fact_cache", "survey_enabled", "become_enabled", "diff_mode", "allow_simultaneous"),
            *flags("prevent_instance_group_fallback", *(f"ask_{prompt}_on_launch" for prompt in JOB_PROMPTS)),
            Field("webhook_service", "", choices=("", "github", "gitlab", "bitbucket_dc")),
            *references(webhook_credential="credentials"),
            *STATE,
        ),
        unique=(("organization", "name"),),
        table=TEMPLATES,
        links={**NOTIFIED, "credentials": "credentials", "labels": "labels", "instance_groups": "instance_groups"},
        children={"jobs": ("jobs", "job_template"), "schedules": ("schedules", "unified_job_template")},
        actions=("launch", "survey_spec"),
        roles=("admin", "execute", "read"),
    ),
    Kind(
        "workflow_job_templates",
        "workflow_job_template",
        "Workflow job template",
        (
            *NAMED,
            EXTRA_VARS,
            *references(organization="organizations", inventory="inventories", webhook_credential="credentials"),
            *flags("survey_enabled", "allow_simultaneous", *(f"ask_{prompt}_on_launch" for prompt in PROMPTS)),
            *(Field(name, None) for name in ("limit", "scm_branch", "job_tags", "skip_tags")),
            Field("webhook_service", "", choices=("", "github", "gitlab", "bitbucket_dc")),
            *STATE,
        ),
        unique=(("organization", "name"),),
        table=TEMPLATES,
        links={**NOTIFIED, "notification_templates_approvals": "notification_templates", "labels": "labels"},
        children={
            "workflow_nodes": ("workflow_job_template_nodes", "workflow_job_template"),
            "workflow_jobs": ("workflow_jobs", "workflow_job_template"),
            "schedules": ("schedules", "unified_job_template"),
        },
        actions=("launch", "survey_spec"),
        roles=("admin", "execute", "approval", "read"),
    ),
    Kind(
        "system_job_templates",
        "system_job_template",
        "System job template",
        (*NAMED, *references(organization="organizations"), *STATE, *read_only(job_type="")),
        table=TEMPLATES,
        children={"schedules": ("schedules", "unified_job_template")},
        methods=("GET",),
    ),
    Kind(
        "workflow_job_template_nodes",
        "workflow_job_template_node",
        "Workflow job template node",
        (
            *OVERRIDES,
            owner("workflow_job_template", "workflow_job_templates"),
            *references(unified_job_template=TEMPLATES),
            *flags("all_parents_must_converge"),
            *text("identifier"),
        ),
        unique=(("identifier", "workflow_job_template"),),
        links={
            **{f"{outcome}_nodes": "workflow_job_template_nodes" for outcome in ("success", "failure", "always")},
            **OVERRIDE_LINKS,
        },
        actions=("create_approval_template",),
    ),
    Kind(
        "workflow_approval_templates",
        "workflow_approval_template",
        "Workflow approval template",
        (*NAMED, *numbers(timeout=0), *references(organization="organizations"), *STATE),
        table=TEMPLATES,
        methods=("GET", "PATCH", "PUT", "DELETE"),
    ),
    Kind(
        "schedules",
        "schedule",
        "Schedule",
        (
            *NAMED,
            *text("rrule", required=True),
            *OVERRIDES,
            owner("unified_job_template", TEMPLATES),
            *flags("enabled", default=True),
            *read_only(next_run=None, dtstart=None, dtend=None, timezone="UTC"),
        ),
        unique=(("unified_job_template", "name"),),
        links=OVERRIDE_LINKS,
    ),
    Kind(
        "labels",
        "label",
        "Label",
        (*text("name", required=True), owner("organization", "organizations")),
        unique=(("name", "organization"),),
        methods=("GET", "POST", "PATCH", "PUT"),
    ),
    Kind(
        "notification_templates",
        "notification_template",
        "Notification template",
        (
            *NAMED,
            owner("organization", "organizations"),
            Field(
                "notification_type", "", required=True, choices=("email", "slack", "webhook", "pagerduty", "grafana", "irc", "mattermost")
            ),
            Field("notification_configuration", {}),
            Field("messages", None),
        ),
        unique=(("organization", "name"),),
    ),
    Kind(
        "applications",
        "o_auth2_application",
        "Application",
        (
            *NAMED,
            owner("organization", "organizations"),
            Field("client_type", "confidential", required=True, choices=("confidential", "public")),
            Field("authorization_grant_type", "password", required=True, choices=("authorization-code", "password")),
            *text("redirect_uris"),
            *flags("skip_authorization"),
            *read_only(client_id="", client_secret=""),
        ),
        unique=(("organization", "name"),),
    ),
    Kind(
        "roles",
        "role",
        "Role",
        read_only(name="", description="", role_field="", content_collection="", object_id=None),
        links={"users": "users", "teams": "teams"},
        methods=("GET",),
    ),
    Kind(
        "jobs",
        "job",
        "Job",
        (
            *RUN,
            Field("job_template", None, read_only=True, to="job_templates"),
            JOB_TYPE,
            *references(inventory="inventories", project="projects", organization="organizations"),
            *references(execution_environment="execution_environments"),
            *text("playbook", "limit", "scm_branch", "job_tags", "skip_tags"),
            EXTRA_VARS,
            Field("diff_mode", False),
            Field("artifacts", {}),
        ),
        table=JOBS,
        links={"labels": "labels", "credentials": "credentials"},
        actions=("cancel", "stdout"),
        methods=("GET", "DELETE"),
    ),
    Kind(
        "workflow_jobs",
        "workflow_job",
        "Workflow job",
        (
            *RUN,
            Field("workflow_job_template", None, read_only=True, to="workflow_job_templates"),
            *references(inventory="inventories", organization="organizations"),
            *text("limit"),
            EXTRA_VARS,
            Field("artifacts", {}),
        ),
        table=JOBS,
        links={"labels": "labels"},
        children={"workflow_nodes": ("workflow_job_nodes", "workflow_job")},
        actions=("cancel",),
        methods=("GET", "DELETE"),
    ),
    Kind(
        "workflow_job_nodes",
        "workflow_job_node",
        "Workflow job node",
        (
            owner("workflow_job", "workflow_jobs"),
            *references(unified_job_template=TEMPLATES, job=JOBS),
            *text("identifier"),
            *flags("do_not_run"),
        ),
        methods=("GET",),
    ),
    Kind(
        "project_updates",
        "project_update",
        "Project update",
        (*RUN, Field("project", None, read_only=True, to="projects"), JOB_TYPE),
        table=JOBS,
        actions=("cancel", "stdout"),
        methods=("GET", "DELETE"),
    ),
    Kind(
        "inventory_updates",
        "inventory_update",
        "Inventory update",
        (*RUN, Field("inventory_source", None, read_only=True, to="inventory_sources")),
        table=JOBS,
        actions=("cancel", "stdout"),
        methods=("GET", "DELETE"),
    ),
)

SECRET_SETTINGS = ("password", "token", "client_secret", "webhook_secret", "account_token")


def _secret(*names: str) -> list[dict[str, object]]:
    return [{"id": name, "label": name.replace("_", " "), "type": "string", "secret": True} for name in names]


def _plain(*names: str) -> list[dict[str, object]]:
    return [{"id": name, "label": name.replace("_", " "), "type": "string"} for name in names]


# The credential types that come with AWX, as far as documents use them: name, kind, namespace, fields.
MANAGED_CREDENTIAL_TYPES = (
    ("Machine", "ssh", "ssh", [*_plain("username", "become_method", "become_username"), *_secret("password", "ssh_key_data")]),
    ("Source Control", "scm", "scm", [*_plain("username"), *_secret("password", "ssh_key_data", "ssh_key_unlock")]),
    ("Vault", "vault", "vault", [*_plain("vault_id"), *_secret("vault_password")]),
    ("Container Registry", "registry", "registry", [*_plain("host", "username", "verify_ssl"), *_secret("password")]),
    (
        "OpenShift or Kubernetes API Bearer Token",
        "kubernetes",
        "kubernetes_bearer_token",
        [*_plain("host", "verify_ssl", "ssl_ca_cert"), *_secret("bearer_token")],
    ),
    (
        "Red Hat Ansible Automation Platform",
        "cloud",
        "controller",
        [*_plain("host", "username", "verify_ssl"), *_secret("password", "oauth_token")],
    ),
    ("Ansible Galaxy/Automation Hub API Token", "galaxy", "galaxy_api_token", [*_plain("url", "auth_url"), *_secret("token")]),
)
