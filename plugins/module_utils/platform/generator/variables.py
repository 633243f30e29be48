# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a launch has to ask for: the variables of the playbooks by who sets them, and the questions of surveys.

Every variable that a playbook takes is in one of these sets, which a test compares with the playbooks.
"""

from __future__ import annotations

from dataclasses import dataclass

# The platform sets the first, credentials and the job template of configure_platform the others.
SET_BY_PLATFORM = frozenset(
    {
        *("awx_job_id", "hub_kubeconfig"),
        *("platform_site", "platform_site_file", "platform_token", "platform_state"),
        *("platform_engine_token", "platform_engine_kubeconfig", "platform_webhook_token"),
        "forge_token",
    }
)
# The same for all jobs: a site sets them in its file, and no launch has to ask.
SET_BY_SITE = frozenset(
    {
        *("cluster_order_api_group", "cluster_order_controller", "cluster_site_namespace", "cluster_allowed_addresses"),
        *("cluster_hooks", "cluster_job_url", "cluster_lock_wait_timeout", "cluster_task_timeout", "cluster_run_timeout"),
        *("dr_bucket", "dr_namespace"),
        *("home_kubeconfig", "fleet_home_server"),
        *("forge", "forge_url", "forge_ca_cert", "orders_repository", "orders_branch", "orders_path"),
    }
)
# What only the launch knows.
SET_AT_LAUNCH = frozenset(
    {
        *("cluster_order_name", "cluster_order_namespace", "cluster_orders", "cluster_wait_timeout"),
        *("cluster_upgrade_release", "cluster_upgrade_parameter", "cluster_upgrade_templates", "cluster_upgrade_label_selectors"),
        *("cluster_upgrade_phases", "cluster_upgrade_group", "cluster_upgrade_canary", "cluster_upgrade_max_unavailable"),
        "cluster_upgrade_degraded_after",
        *("dr_workload_namespace", "dr_workload", "dr_cluster", "dr_policy", "dr_placement_name", "dr_pvc_selector"),
        *("dr_protected_namespaces", "dr_end_test", "dr_wait", "dr_wait_timeout"),
        *("fleet_hub", "fleet_hub_capacity", "fleet_hub_region"),
        *("cluster_template", "cluster_template_parameters", "cluster_node_requests", "cluster_order_state", "cluster_order_namespaces"),
    }
)


@dataclass(frozen=True)
class Question:
    """A question of a survey. Its answer is required: the playbooks refuse an empty one. `of_templates`: it lists cluster templates."""

    text: str
    of_templates: bool = False


QUESTIONS = {
    "cluster_upgrade_release": Question("Release that the orders move to"),
    "cluster_upgrade_templates": Question("Templates whose orders move", of_templates=True),
    "dr_workload_namespace": Question("Namespace of the DRPlacementControl"),
    "dr_workload": Question("Name of the DRPlacementControl"),
    "dr_cluster": Question("Cluster that should have the workload"),
    "dr_policy": Question("DRPolicy of the protection"),
    "fleet_hub": Question("Name of the hub"),
}
_WORKLOAD = ("dr_workload_namespace", "dr_workload")
# A playbook that a rulebook launches has none: a required answer would refuse the launch.
SURVEYS = {
    "upgrade_clusters": ("cluster_upgrade_release", "cluster_upgrade_templates"),
    "protect": (*_WORKLOAD, "dr_policy", "dr_cluster"),
    "failover": (*_WORKLOAD, "dr_cluster"),
    "relocate": (*_WORKLOAD, "dr_cluster"),
    "test_failover": (*_WORKLOAD, "dr_cluster"),
    "unprotect": _WORKLOAD,
    "prepare_hub": ("fleet_hub",),
    "drain_hub": ("fleet_hub",),
}
# In check mode they show a plan, or, for sync_status, prove that the platform works.
WITH_CHECK_MODE = frozenset({*SURVEYS, "sync_status", "configure_platform"})
