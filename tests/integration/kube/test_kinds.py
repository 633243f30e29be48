"""The kinds that are registered, against what a real API server says of them."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.dr import kinds as dr_kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet import kinds as _fleet  # noqa: F401 - it registers kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops import kinds as flux_kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import network_attachments as _networks  # noqa: F401
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.kinds import in_apply_order, registered_kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import model as _orders  # noqa: F401 - it registers kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.providers import hypershift as _hypershift  # noqa: F401 - the same
from ansible_collections.openfleet.clusters.plugins.module_utils.registry import model as _registry  # noqa: F401 - the same

VERSIONS = {
    "agent-install.openshift.io": "v1beta1",
    "hypershift.openshift.io": "v1beta1",
    "cloudkit.openshift.io": "v1alpha1",
    "fleet.openfleet.io": "v1alpha1",
    "infrastructure.openfleet.io": "v1alpha1",
    "ramendr.openshift.io": "v1alpha1",
}
# Ramen's own kinds are compared with its CRDs where discovery from a DRPolicy is tested, those of disaster recovery, of
# networks and of Flux where their CRDs are, and orders of OSAC's group where its CRD is.
ELSEWHERE = {("osac.openshift.io", "ClusterOrder"), ("ramendr.openshift.io", "DRCluster"), ("ramendr.openshift.io", "DRPolicy")}
ELSEWHERE |= {(version.partition("/")[0], kind) for kind, version in dr_kinds.VERSIONS.items()}
ELSEWHERE |= {("ramendr.openshift.io", kind) for kind in (dr_kinds.DRPC, dr_kinds.VRG)}
ELSEWHERE |= {("k8s.cni.cncf.io", "NetworkAttachmentDefinition")}
ELSEWHERE |= {key for key in registered_kinds() if key[0].endswith(flux_kinds.GROUP_SUFFIX)}
OURS = {("cloudkit.openshift.io", "ClusterOrder"), ("hypershift.openshift.io", "NodePool"), ("ramendr.openshift.io", "ClusterRegistry")}


@pytest.mark.parametrize(("group", "kind"), sorted(registered_kinds().keys() - ELSEWHERE))
def test_registered_kind_is_what_the_server_discovers(group: str, kind: str, hub: Access) -> None:
    kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
    api_version = f"{group}/{VERSIONS.get(group, 'v1')}" if group else "v1"
    assert kube._mapper.discover(api_version, kind) == registered_kinds()[group, kind]  # noqa: SLF001 - around the registry


def test_packages_register_their_kinds_when_they_are_imported() -> None:
    assert registered_kinds().keys() >= OURS | ELSEWHERE


def test_node_pools_are_applied_after_their_hosted_cluster() -> None:
    items = [{"apiVersion": "hypershift.openshift.io/v1beta1", "kind": kind} for kind in ("NodePool", "HostedCluster")]
    assert [[item["kind"] for item in group] for group in in_apply_order(items)] == [["HostedCluster"], ["NodePool"]]
