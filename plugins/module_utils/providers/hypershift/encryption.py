# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The key that encrypts the Secrets of a hosted cluster in its etcd. It is generated once; without it these Secrets are lost."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable

from ...common.types import Object
from ..base import ClusterRef, ProviderError
from ..objects import secret

KEY, KEY_BYTES = "key", 32


def key_name(ref: ClusterRef) -> str:
    """The name of the Secret with the key."""
    return f"{ref.name}-etcd-encryption-key"


def aescbc(ref: ClusterRef) -> Object:
    """The `spec.secretEncryption` of a HostedCluster with that key."""
    return {"type": "aescbc", "aescbc": {"activeKey": {"name": key_name(ref)}}}


def new_key(ref: ClusterRef) -> Object:
    """The Secret with a new key, for where there is none."""
    made = secret(ref, key_name(ref), {})
    return {**made, "data": {KEY: base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}}


def require_key(ref: ClusterRef, wanted: Iterable[Object], known: Iterable[Object]) -> None:
    """ProviderError if a cluster that exists is wanted with a key that does not exist: its Secrets could not be decrypted."""
    is_wanted, is_known = (
        any((item["kind"], item["metadata"]["name"]) == ("Secret", key_name(ref)) for item in of) for of in (wanted, known)
    )
    if is_wanted and not is_known:
        raise ProviderError(
            f"The Secret {ref.namespace}/{key_name(ref)} does not exist. It holds the key that encrypts the Secrets of {ref.name} "
            "in etcd. Restore it from a backup; a new key would not decrypt them."
        )


def with_present_key(wanted: Object, present: Object) -> Object:
    """The Secret with the key that it has already."""
    return {**wanted, "data": present.get("data") or wanted["data"]}
