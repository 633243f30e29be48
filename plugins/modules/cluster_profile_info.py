#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_profile_info
short_description: List the profiles that a site offers
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Lists the profiles that orders can have, with the versions that the chart repositories of the site have now.
  - A profile is a Helm chart that Flux installs in the cluster of an order. The settings of the site have the profiles
    and the repositories.
  - A repository that does not answer is reported in RV(profiles[].problem) of its profiles, and is no failure.
options:
  template:
    description:
      - List only what orders of this template can have. The task fails if the template does not exist.
      - The name is a C(spec.templateID) of an order. Without dots it is a template of C(openfleet.clusters).
    type: str
seealso:
  - module: openfleet.clusters.cluster_template_info
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: List the profiles for a template
  openfleet.clusters.cluster_profile_info:
    template: ocp_4_17_small
  register: offered

- name: Show their versions
  ansible.builtin.debug:
    msg: "{{ offered.profiles | items2dict(key_name='name', value_name='versions') }}"
"""

RETURN = r"""
profiles:
  description: The profiles, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the profile, which an order gives as C(name) or C(chart).
      type: str
      returned: always
      sample: cert-manager
    description:
      description: Description by the site, or else by the chart.
      type: str
      returned: always
      sample: Certificates for services
    repository:
      description: Name of the chart repository.
      type: str
      returned: always
      sample: acme
    chart:
      description: Name of the chart in its repository.
      type: str
      returned: always
      sample: cert-manager
    versions:
      description: The versions that an order can have, the newest first, at most 50.
      type: list
      elements: str
      returned: always
      sample: ["1.16.2", "1.16.1"]
    layer:
      description: The layer of an order that sets none.
      type: int
      returned: always
      sample: 10
    namespace:
      description: The namespace in the cluster of an order that sets none.
      type: str
      returned: always
      sample: cert-manager
    values:
      description: The values of site and template, which those of an order are merged into.
      type: dict
      returned: always
      sample: {"replicaCount": 2}
    required:
      description: Whether every order of the template has the profile.
      type: bool
      returned: always
      sample: false
    editable:
      description: What an order can set.
      type: list
      elements: str
      returned: always
      sample: ["version", "layer", "namespace", "values"]
    requires:
      description: Profiles that the newest version needs, with ranges of their versions.
      type: dict
      returned: always
      sample: {"trust-manager": ">=0.12"}
    conflicts:
      description: Profiles that a cluster cannot have beside it.
      type: list
      elements: str
      returned: always
      sample: []
    problem:
      description: Why the versions cannot be listed.
      type: str
      returned: always, V(null) without a problem
      sample: "The chart repository acme cannot be used: https://charts.example.com/index.yaml does not answer in time."
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {"template": {"type": "str"}}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
