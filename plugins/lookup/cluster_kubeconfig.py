# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kubeconfig of a host of the fleet inventory, read from the hub when a task uses it."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_kubeconfig
short_description: The kubeconfig of a cluster of the fleet
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Reads the kubeconfig of a host of the inventory P(openfleet.clusters.fleet#inventory) from the hub of that
    inventory.
  - Host variables have no secrets. If the hub needs a token or password, set it as an option here, or in the
    environment.
  - The result is a secret. Pass it to options that hide it, such as
    O(openfleet.clusters.cluster_order_info#module:kubeconfig) and those of kubernetes.core. Set C(no_log) on any other
    task.
options:
  _terms:
    description: Names of hosts. Defaults to the host of the task.
    type: list
    elements: str
extends_documentation_fragment:
  - openfleet.clusters.kubernetes
seealso:
  - plugin: openfleet.clusters.fleet
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: Read the orders on a cluster of the fleet that is a hub itself
  openfleet.clusters.cluster_order_info:
    kubeconfig: "{{ lookup('openfleet.clusters.cluster_kubeconfig') }}"

- name: Write a kubeconfig to a file with restricted permissions
  ansible.builtin.copy:
    content: "{{ lookup('openfleet.clusters.cluster_kubeconfig', 'east.dr') | to_nice_yaml }}"
    dest: "{{ scratch }}/east.kubeconfig"
    mode: "0600"
  no_log: true
"""

RETURN = r"""
_raw:
  description: The kubeconfigs, each as a dictionary.
  type: list
  elements: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig import kubeconfig_from
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        given = {name: self.get_option(name) for name in KUBERNETES}
        options = {name: value for name, value in given.items() if value is not None}
        known = variables or {}
        return [self._kubeconfig(str(host), known, options) for host in terms or [known.get("inventory_hostname")]]

    def _kubeconfig(self, host: str, variables: Mapping[str, Any], options: dict[str, Any]) -> Any:
        hosts = variables.get("hostvars") or {}
        # hostvars.get() of an unknown host returns an object that fails later.
        known: Mapping[str, Any] = {}
        if host in hosts:
            known = hosts[host]
        source, hub = known.get("fleet_kubeconfig_source"), known.get("fleet_hub") or {}
        if not isinstance(source, Mapping):
            raise AnsibleLookupError(f"{host} is not a host of the inventory openfleet.clusters.fleet: name one of its hosts.")
        try:
            return kubeconfig_from(Kube.connect(dict(hub) | options), source)
        except KubeError as error:
            raise AnsibleLookupError(str(error)) from error
