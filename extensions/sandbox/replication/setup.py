"""What a cluster of the sandbox has for replication: the CRDs, a storage class, and Ramen's configuration with a store for each cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import yaml

from ....plugins.module_utils.common.types import Object
from ..crds import COLLECTION_CRDS, crds_in, load_crd
from .volumes import PROVISIONER, STORAGE_CLASS

# Ramen's configuration on a managed cluster.
NAMESPACE, CONFIG_MAP, KEY, SECRET = "ramen-system", "ramen-dr-cluster-operator-config", "ramen_manager_config.yaml", "s3"
OWN_CRDS, CSI_ADDONS_CRDS = (Path(__file__).parent / name for name in ("crds", "csi_addons"))
# A folder with CRDs of other projects, each in a folder of its own, for what the sandbox otherwise has smaller CRDs of
# its own.
UPSTREAM_CRDS = "OPENFLEET_UPSTREAM_CRDS"


def ramen_crds() -> list[Object]:
    """Ramen's own CRDs where they are given, else the sandbox's, which have the fields that are used here."""
    folder = os.environ.get(UPSTREAM_CRDS)
    return crds_in(Path(folder) / "ramen" if folder else OWN_CRDS)


def cluster_crds() -> list[Object]:
    """The CRDs of a cluster that takes part: Ramen's kinds, the fence of csi-addons, and the registry of its peers."""
    return [*ramen_crds(), *crds_in(CSI_ADDONS_CRDS), load_crd(COLLECTION_CRDS / "clusterregistries.yaml")]


def profile_of(cluster: str) -> str:
    return f"s3-{cluster}"


def bucket_of(cluster: str) -> str:
    return f"ramen-{cluster}"


def cluster_objects(clusters: Iterable[str], s3: Object) -> list[Object]:
    """The objects of each cluster; `s3` is the description of the sandbox's store."""
    reference = {"name": SECRET, "namespace": NAMESPACE}
    profiles = [
        {
            "s3ProfileName": profile_of(cluster),
            "s3Bucket": bucket_of(cluster),
            "s3CompatibleEndpoint": s3["url"],
            "s3Region": s3["region"],
            "s3SecretRef": reference,
        }
        for cluster in clusters
    ]
    secret = {"AWS_ACCESS_KEY_ID": s3["access_key"], "AWS_SECRET_ACCESS_KEY": s3["secret_key"]}
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": reference, "stringData": secret},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: yaml.safe_dump({"s3StoreProfiles": profiles})}},
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Retain",
        },
    ]


def create_buckets(clusters: Iterable[str], s3: Object) -> None:
    """Create the bucket of each cluster where it is missing. It blocks."""
    import boto3  # only a sandbox with replication needs it

    secrets = {"aws_access_key_id": s3["access_key"], "aws_secret_access_key": s3["secret_key"]}
    client = boto3.client("s3", endpoint_url=s3["url"], region_name=s3["region"], **secrets)
    present = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
    for name in {bucket_of(cluster) for cluster in clusters} - present:
        client.create_bucket(Bucket=name)
