"""The NetworkAttachmentDefinition of a cluster: its name, its content, and what cannot be one."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.errors import SiteMistake
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.network_attachments import (
    attachment_name,
    attachment_reference,
    network_attachment,
)

REFERENCE = attachment_reference("lab", "default")
LABELS = {"cluster": "lab"}


def test_no_two_clusters_have_the_same_name_and_multus_accepts_it() -> None:
    names = {attachment_name(namespace, name) for namespace, name in (("a-b", "c"), ("a", "b-c"), ("a", "b.c"), ("a", "b" * 60))}
    assert len(names) == 4 and all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in names)


def test_it_is_a_vlan_of_the_bridge_and_deleted_with_the_namespace_of_the_cluster() -> None:
    made = network_attachment(REFERENCE, "br-tenants", 103, LABELS, {"metadata": {"name": "clusters", "uid": "u"}})
    config = json.loads(made["spec"]["config"])
    assert (config["type"], config["bridge"], config["vlan"], config["macspoofchk"]) == ("bridge", "br-tenants", 103, True)
    assert made["metadata"]["labels"] == LABELS
    assert made["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Namespace", "name": "clusters", "uid": "u"}]
    assert "ownerReferences" not in network_attachment(REFERENCE, "br0", 1, LABELS, None)["metadata"]


@pytest.mark.parametrize(
    ("bridge", "vlan", "message"),
    [("", 1, "bridge must be"), ("a name of more than fifteen", 1, "bridge must be"), ("br0", 0, "not 0"), ("br0", 4095, "not 4095")],
)
def test_a_mistake_of_the_site_is_named(bridge: str, vlan: int, message: str) -> None:
    with pytest.raises(SiteMistake, match=message):
        network_attachment(REFERENCE, bridge, vlan, LABELS, None)
