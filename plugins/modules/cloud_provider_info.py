#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cloud_provider_info
short_description: List the clouds and regions of a provider
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Lists the clouds and regions that a provider offers to the account of a cluster.
options:
  cloud_provider:
    description: List only this cloud.
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
- name: List the regions of AWS
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
      description: ID of the cloud, a value of O(openfleet.clusters.cluster#module:cloud_provider).
      type: str
      returned: always
      sample: aws
    regions:
      description: Regions of the cloud.
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

SPEC: Spec = CLUSTER | {"cloud_provider": {"type": "str"}}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
