# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The keys by which clusters sign their notifications: one for each order, derived from a key of the site.

A cluster has only its own key, from which neither that of the site nor that of another order follows. So a hostile cluster can ask for an
observation of its own order, and of no other. The key of the site is a Secret in its namespace, created when it is first needed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict
from ..kube.secret_data import NotText, decode

SECRET, KEY = "gitops-notifications", "key"
PATH = "gitops-notifications"  # of the webhook, before the uid of the order
PURPOSE = "gitops-notifications/"
SIGNATURE_HEADER = "X-Signature"


def find_site_key(kube: Kube, site_namespace: str) -> str:
    """The key of the site; empty where it has none yet."""
    return _key(kube.find("v1", "Secret", SECRET, site_namespace))


def ensure_site_key(kube: Kube, site_namespace: str) -> str:
    """The key of the site, created if it has none. Of two runs that create one, the first one's counts."""
    if found := find_site_key(kube, site_namespace):
        return found
    data = {KEY: base64.b64encode(secrets.token_hex(32).encode()).decode()}
    item = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": site_namespace}, "type": "Opaque", "data": data}
    try:
        return _key(kube.create(item))
    except Conflict:
        return find_site_key(kube, site_namespace)


def key_of(site_key: str, uid: str) -> str:
    """The key of one order's cluster."""
    return hmac.new(site_key.encode(), f"{PURPOSE}{uid}".encode(), hashlib.sha256).hexdigest()


def address_of(engine: str, uid: str) -> str:
    return f"{engine.rstrip('/')}/{PATH}/{uid}"


def is_signed(site_key: str, uid: str, body: bytes, signature: str) -> bool:
    """Whether the cluster of this order has signed the body."""
    if not site_key:
        return False
    digest = hmac.new(key_of(site_key, uid).encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.removeprefix("sha256=").encode("utf-8", "surrogateescape"), digest.encode())


def _key(secret: Object | None) -> str:
    try:
        return decode((secret or {}).get("data", {}).get(KEY, "")).strip()
    except NotText:
        return ""
