#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_dns_records
short_description: Manage the DNS records of a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Writes all records of a cluster in one atomic update, and deletes records that it has written before.
  - A TXT record C(_openfleet-clusters) in O(domain) names the cluster that owns the records. The module changes neither
    records of another cluster nor records that it has not written.
  - Does not wait until the records are visible. RV(visible) shows it, and a later run of the same task shows it again.
options:
  state:
    description:
      - V(present) writes O(records).
      - V(absent) deletes all records of the cluster in O(domain).
    type: str
    choices: [present, absent]
    default: present
  zone:
    description: Name of the DNS zone, for example C(example.com).
    type: str
    required: true
  domain:
    description: Domain of the cluster in O(zone). The default is the name of the cluster in O(zone), for example
      C(demo.example.com).
    type: str
  records:
    description:
      - Targets by name, relative to O(domain), for example C(api) or C(*.apps).
      - The targets of a name are addresses, or one other name. Required if O(state=present).
    type: dict
  keep:
    description: Names whose records stay as they are, because their targets are not known now.
    type: list
    elements: str
    default: []
  ttl:
    description: Seconds for which resolvers keep the records.
    type: int
    default: 300
  resolvers:
    description:
      - Resolvers that RV(visible) is about, as C(<address>) or C(<address>:<port>).
      - The default is the server of O(rfc2136), and with O(route53) the resolvers of the machine.
    type: list
    elements: str
    default: []
  rfc2136:
    description: A zone on a DNS server with dynamic updates, such as BIND or Knot.
    type: dict
    suboptions:
      server:
        description: Address or name of the primary server.
        type: str
        required: true
      port:
        description: TCP port of the server.
        type: int
        default: 53
      secret:
        description: Name of a Secret in O(site_namespace) with a TSIG key in C(name), C(secret) and C(algorithm), which
          is C(hmac-sha256) by default. Without a Secret updates are not signed.
        type: str
  route53:
    description: A hosted zone of Amazon Route 53.
    type: dict
    suboptions:
      zone_id:
        description: Id of the hosted zone.
        type: str
        required: true
      secret:
        description: Name of a Secret in O(site_namespace) with C(aws_access_key_id) and C(aws_secret_access_key).
          Without a Secret the credentials are those of the machine that runs Ansible.
        type: str
      endpoint_url:
        description: Address of another server with the same API.
        type: str
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
requirements:
  - dnspython
  - boto3, for O(route53)
"""

EXAMPLES = r"""
- name: Write the records of a cluster
  openfleet.clusters.cluster_dns_records:
    name: lab
    namespace: clusters
    provider: hypershift
    zone: example.com
    records:
      api: [192.0.2.10]
      api-int: [192.0.2.10]
      "*.apps": [192.0.2.11]
    rfc2136: "{{ dns_server }}"
  register: dns

- name: Show what is not visible yet
  ansible.builtin.debug:
    msg: "{{ dns.missing }}"

- name: Delete the records of the cluster
  openfleet.clusters.cluster_dns_records:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
    zone: example.com
    rfc2136: "{{ dns_server }}"
"""

RETURN = r"""
missing:
  description: Names that do not resolve to their records yet. In check mode it is about the records that exist.
  returned: if O(state=present)
  type: list
  elements: str
  sample: ["api.lab.example.com"]
records:
  description: The records of the cluster.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the records.
      type: str
      returned: always
      sample: api.lab.example.com
    type:
      description: Type of the records.
      type: str
      returned: always
      sample: A
    values:
      description: Values of the records.
      type: list
      elements: str
      returned: always
      sample: ["192.0.2.10"]
part:
  description: The same as a part of the infrastructure of an order, for the condition C(InfrastructureReady).
  returned: if O(state=present)
  type: dict
  contains:
    ready:
      description: Whether the records are visible.
      type: bool
      returned: always
      sample: false
    reason:
      description: V(RecordsVisible) or V(RecordsNotVisible).
      type: str
      returned: always
      sample: RecordsNotVisible
    message:
      description: The human-readable reason.
      type: str
      returned: always
      sample: The DNS records api.lab.example.com are not visible yet
visible:
  description: Whether the resolvers know all records.
  returned: if O(state=present)
  type: bool
  sample: true
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    CLUSTER,
    CLUSTER_RULES,
    KUBERNETES,
    LOCK,
    ORDERS,
    Spec,
)

# The name of a Secret is no secret.
RFC2136: Spec = {
    "server": {"type": "str", "required": True},
    "port": {"type": "int", "default": 53},
    "secret": {"type": "str", "no_log": False},
}
ROUTE53: Spec = {
    "zone_id": {"type": "str", "required": True},
    "secret": {"type": "str", "no_log": False},
    "endpoint_url": {"type": "str"},
}
SPEC: Spec = {
    **CLUSTER,
    **LOCK,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "zone": {"type": "str", "required": True},
    "domain": {"type": "str"},
    "records": {"type": "dict"},
    "keep": {"type": "list", "elements": "str", "default": []},
    "ttl": {"type": "int", "default": 300},
    "resolvers": {"type": "list", "elements": "str", "default": []},
    "rfc2136": {"type": "dict", "options": RFC2136},
    "route53": {"type": "dict", "options": ROUTE53},
}
RULES: dict[str, Any] = CLUSTER_RULES | {
    "required_one_of": [*CLUSTER_RULES["required_one_of"], ("rfc2136", "route53")],
    "mutually_exclusive": [("rfc2136", "route53")],
    "required_if": [("state", "present", ("records",))],
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
