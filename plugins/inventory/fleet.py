# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every cluster of a hub as an Ansible host. It reads no Secret, so none can be in its output or cache."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
short_description: Every ordered and every registered cluster as a host
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Each C(ClusterOrder) and each cluster of a C(ClusterRegistry) is a host, named C(<name>.<namespace>).
  - Hosts are in the groups C(ordered) or C(registered), C(phase_<phase>), C(template_<template>), C(region_<region>)
    and C(provider_<provider>). An order without a phase is in C(phase_pending), a cluster that was not ordered in
    C(provider_registered). The region of an order is its label C(topology.kubernetes.io/region).
  - Tasks for these hosts run on the controller. The host variables, which begin with C(fleet_), describe the cluster
    and the location of its kubeconfig. The kubeconfig itself is in no variable and in no cache. A play reads it with
    the lookup P(openfleet.clusters.cluster_kubeconfig#lookup).
  - The name of the inventory file must end in C(fleet.yml) or C(fleet.yaml).
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
    choices: [openfleet.clusters.fleet]
  namespace:
    description: Namespace of the orders and registries. Defaults to all namespaces.
    type: str
  sources:
    description:
      - The objects to read. Omit those that the account has no permission to list.
      - V(fleet_clusters) are the C(FleetCluster)s on the home cluster of a fleet, which are on all its hubs. They are
        in the groups C(fleet_cluster) and C(hub_<hub>) too. Only their hubs have their kubeconfigs.
    type: list
    elements: str
    choices: [orders, registries, fleet_clusters]
    default: [orders, registries]
  registry_kind:
    description:
      - The form of the registries, as in O(openfleet.clusters.cluster_registry#module:kind).
      - The inventory skips an invalid registry, with a warning that names it.
    type: str
    choices: [ClusterRegistry, ConfigMap]
    default: ClusterRegistry
seealso:
  - plugin: openfleet.clusters.cluster_kubeconfig
    plugin_type: lookup
extends_documentation_fragment:
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
  - inventory_cache
  - constructed
"""

EXAMPLES = r"""
# A file fleet.yml. The hub is the one of KUBECONFIG, as for kubectl.
plugin: openfleet.clusters.fleet
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/fleet
cache_timeout: 300
strict: true
compose:
  site: fleet_region | default('none', true)
groups:
  needs_attention: fleet_phase | default('') in ('Failed', 'Degraded') or fleet_healthy | default(true) == false
keyed_groups:
  - prefix: version
    key: fleet_version | default('unknown', true)
"""

import hashlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.inventory.group import to_safe_group_name
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS
from ansible_collections.openfleet.clusters.plugins.module_utils.common.text import did_you_mean
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.inventory import InventoryCluster, list_clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates

# The connection options that host variables may have. The others are, or may contain, secrets.
PUBLIC = ("context", "host", "client_cert", "client_key", "ca_cert", "validate_certs", "no_proxy", "impersonate_user", "impersonate_groups")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "openfleet.clusters.fleet"

    def verify_file(self, path: str) -> bool:
        return bool(super().verify_file(path)) and path.endswith(("fleet.yml", "fleet.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._refuse_unknown_options(self._read_config_data(path))
        hub = self._hub_options()
        try:
            fleet = self._fleet(Kube.connect(hub), path, cache)
        except KubeError as error:
            raise AnsibleParserError(str(error)) from error
        for cluster in fleet:
            self._add(cluster, _public(hub))

    def _refuse_unknown_options(self, config: dict[str, Any]) -> None:
        """Ansible ignores unknown options, so a misspelled one would have no effect."""
        known = {name for option, spec in self.option_definitions.items() for name in (option, *_aliases(spec))}
        for name in config:
            if name not in known:
                raise AnsibleParserError(
                    f"The option {name} does not exist{did_you_mean(name, sorted(known))}: see ansible-doc -t inventory {self.NAME}."
                )

    def _hub_options(self) -> dict[str, Any]:
        given = {name: self.get_option(name) for name in KUBERNETES}
        return {name: self.templar.template(value) for name, value in given.items() if value is not None}

    def _fleet(self, hub: Kube, path: str, cache: bool) -> list[InventoryCluster]:
        query = {name: self.get_option(name) for name in (*ORDERS, "namespace", "sources", "registry_kind")}
        # A cache is valid only for the same hub and the same query.
        key = f"{self.get_cache_key(path)}_{_digest([hub.target.server, hub.target.impersonate_user, query])}"
        if self.get_option("cache") and cache:
            try:
                return [InventoryCluster(**entry) for entry in self._cache[key]]
            except (KeyError, TypeError):
                pass  # not cached, expired, or cached by another version of this plugin
        fleet = list_clusters(
            hub,
            Names.of(query),
            find_templates(AnsibleCollectionConfig.collection_paths),
            namespace=query["namespace"],
            sources=query["sources"],
            registry_kind=query["registry_kind"],
            warn=self.display.warning,
        )
        if self.get_option("cache"):
            self._cache[key] = [asdict(cluster) for cluster in fleet]
        return fleet

    def _add(self, cluster: InventoryCluster, hub: dict[str, Any]) -> None:
        host = cluster.host
        self.inventory.add_host(host)
        for group in cluster.groups:
            self.inventory.add_child(self.inventory.add_group(to_safe_group_name(group, force=True, silent=True)), host)
        # A cluster is no machine to log in to, so tasks run on the controller.
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "fleet_hub": hub}
        for name, value in (cluster.variables | local).items():
            self.inventory.set_variable(host, name, value)
        strict, variables = self.get_option("strict"), self.inventory.get_host(host).get_vars()
        self._set_composite_vars(self.get_option("compose"), variables, host, strict)
        self._add_host_to_composed_groups(self.get_option("groups"), {}, host, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), {}, host, strict)


def _public(hub: dict[str, Any]) -> dict[str, Any]:
    """The connection options of the hub without secrets. A kubeconfig is only included as a path."""
    public = {name: hub[name] for name in PUBLIC if name in hub}
    if isinstance(hub.get("kubeconfig"), str):
        paths = [str(Path(part).expanduser().absolute()) for part in hub["kubeconfig"].split(os.pathsep) if part]
        public["kubeconfig"] = os.pathsep.join(paths)
    return public


def _aliases(spec: dict[str, Any]) -> list[str]:
    return list(spec.get("aliases") or [])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
