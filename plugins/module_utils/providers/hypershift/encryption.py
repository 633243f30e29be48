# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The key that encrypts the Secrets of a hosted cluster in its etcd. It is generated once; without it these Secrets are lost."""

from __future__ import annotations

import base64
import secrets

from ...common.types import Object
from ..base import ClusterRef
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


def with_present_key(wanted: Object, present: Object) -> Object:
    """The Secret with the key that it has already."""
    return {**wanted, "data": present.get("data") or wanted["data"]}
