# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The newest primary VolumeReplicationGroup in Ramen's stores. Read only if the bucket knows nothing of the workload.

A store that does not answer in time counts as none: it may be that of the site that is lost.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait

from ..common.third_party import yaml
from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..s3.errors import S3Error
from ..s3.store import connect
from .ramen_api import DESTINATION
from .vrg import VRG

# Ramen's configuration on a managed cluster, and on a hub.
NAMESPACE, KEY = "ramen-system", "ramen_manager_config.yaml"
CONFIG_MAPS = ("ramen-dr-cluster-operator-config", "ramen-hub-operator-config")
GZIP = b"\x1f\x8b"

log = logging.getLogger(__name__)


def newest_primary(kube: Kube, workload: WorkloadRef, profiles: Iterable[str], seconds: float) -> tuple[VRG | None, str]:
    """The newest by its last update and its cluster, over all stores of these profiles that answer within `seconds`."""
    wanted = set(profiles)
    entries = [entry for entry in _configured(kube) if entry.get("s3ProfileName") in wanted]
    if not entries:
        return None, ""
    threads = ThreadPoolExecutor(len(entries))
    try:
        reads = [threads.submit(_read, kube, entry, workload) for entry in entries]
        done, _late = wait(reads, timeout=seconds)
        items = [item for read in done if (item := read.result())]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    found = [(VRG.from_object(item), str((item["metadata"].get("annotations") or {}).get(DESTINATION, ""))) for item in items]
    primaries = [each for each in found if each[0].claims_data]
    return max(primaries, key=lambda each: each[0].last_update, default=(None, ""))


def _configured(kube: Kube) -> list[Object]:
    for name in CONFIG_MAPS:
        config = kube.find("v1", "ConfigMap", name, NAMESPACE)
        if config:
            content = yaml.safe_load((config.get("data") or {}).get(KEY) or "") or {}
            return list(content.get("s3StoreProfiles") or [])
    return []


def _read(kube: Kube, entry: Object, workload: WorkloadRef) -> Object | None:
    try:
        return _newest(kube, entry, workload)
    except (S3Error, KubeError, KeyError, ValueError, OSError) as error:
        # Of any kind: one store that is lost or broken must not hide what the others have.
        log.warning("The store of the S3 profile %s is not read for %s: %s", entry.get("s3ProfileName"), workload, error)
        return None


def _newest(kube: Kube, entry: Object, workload: WorkloadRef) -> Object | None:
    reference = entry["s3SecretRef"]
    secret = kube.get("v1", "Secret", reference["name"], reference.get("namespace") or NAMESPACE)["data"]
    keys = [base64.b64decode(secret[name]).decode() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    store = connect(
        {
            "bucket": entry["s3Bucket"],
            "endpoint_url": entry.get("s3CompatibleEndpoint"),
            "region": entry.get("s3Region"),
            "access_key": keys[0],
            "secret_key": keys[1],
        }
    )
    stored = store.get(f"{workload.namespace}/{workload.name}/v1alpha1.VolumeReplicationGroup/a")
    if stored:
        body = gzip.decompress(stored.body) if stored.body.startswith(GZIP) else stored.body
        item: Object = json.loads(body)
        return item
    return None
