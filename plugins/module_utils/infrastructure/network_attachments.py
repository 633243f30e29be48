# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The network of a cluster of virtual machines on the hub: a NetworkAttachmentDefinition of a VLAN on a bridge of the hub's nodes. Pure.

It is in a namespace that virtual machines of every namespace may refer to, and so has an owner: Kubernetes deletes it with the namespace
of the cluster, also where no run does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ..common.argument_values import show
from ..common.types import Object
from ..kube.kinds import register
from ..lock.lease import lease_name
from .errors import SiteMistake

GROUP, KIND = "k8s.cni.cncf.io", "NetworkAttachmentDefinition"
API_VERSION = f"{GROUP}/v1"
CNI_VERSION = "0.3.1"
VLANS = range(1, 4095)
BRIDGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # the name of a network interface of Linux
register(GROUP, KIND, "network-attachment-definitions")


def attachment_name(namespace: str, name: str) -> str:
    """The name for that cluster, which no other one has: that of its lock, without the dot, which Multus refuses."""
    return lease_name(namespace, name).replace(".", "-")


def attachment_reference(name: str, namespace: str) -> Object:
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name, "namespace": namespace}}


def network_attachment(reference: Object, bridge: str, vlan: int, labels: Mapping[str, str], owner: Object | None) -> Object:
    """The object; SiteMistake for a bridge or a VLAN that cannot be one. Its `owner` is a Namespace, or None where that does not exist."""
    problems = [] if BRIDGE.fullmatch(bridge) else [f"bridge must be the name of a bridge on the nodes of the hub, not {show(bridge)}"]
    if vlan not in VLANS:
        problems.append(f"vlan must be a number from 1 to 4094, not {vlan}")
    if problems:
        raise SiteMistake(f"The network of the cluster cannot be attached: {'; '.join(problems)}.", ["bridge", "vlan"])
    metadata = {**reference["metadata"], "labels": dict(labels)}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Namespace", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
    config = {
        "cniVersion": CNI_VERSION,
        "name": metadata["name"],
        "type": "bridge",
        "bridge": bridge,
        "vlan": vlan,
        "macspoofchk": True,  # no virtual machine uses the address of another one
        "ipam": {},
    }
    return reference | {"metadata": metadata, "spec": {"config": json.dumps(config)}}
