#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cloud_provider_info
short_description: Tell where a provider can make clusters
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It lists the clouds and regions that a provider offers to the account that a cluster of it uses.
options:
  cloud_provider:
    description: The only cloud to tell of.
    type: str
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster
"""

EXAMPLES = r"""
- name: See which regions there are
  openfleet.clusters.cloud_provider_info:
    name: lab
    namespace: clusters
    provider: ocm
    cloud_provider: aws
  register: found
"""

RETURN = r"""
cloud_providers:
  description: The clouds.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: What the cloud is called, as O(openfleet.clusters.cluster#module:cloud_provider) takes it.
      type: str
      returned: always
      sample: aws
    regions:
      description: Its regions.
      type: list
      elements: dict
      returned: always
      sample:
        - id: us-east-1
          name: US East, N. Virginia
          multi_az: true
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    CLUSTER,
    CLUSTER_RULES,
    KUBERNETES,
    ORDERS,
    Spec,
)

SPEC: Spec = {
    **CLUSTER,
    "cloud_provider": {"type": "str"},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
