# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The account that a cluster of OpenShift Cluster Manager was last read by, recorded in the Secret beside the cluster.

The service answers 404 for a cluster that the account of the token may not see, as for one that does not exist. So with a token of
another account, "not found" does not mean that the cluster is deleted: it must not be created a second time, nor be forgotten.
"""

from __future__ import annotations

import hashlib

from ..base import ProviderError
from .api import OcmApi
from .secret import AccessSecret

ACCOUNT = "account"
TOKEN = "account-token"  # noqa: S105 - the key of a digest of the token that the account was recorded for


class OtherAccount(ProviderError):
    """The cluster is not found, by another account than the one that created it or last saw it."""


def account_record(api: OcmApi, secret: AccessSecret) -> dict[str, str]:
    """What the Secret has yet to record about the account of the token; nothing where that was recorded for this token."""
    digest = _digest(api)
    return {} if secret.content.get(TOKEN) == digest else {ACCOUNT: api.account(), TOKEN: digest}


def require_recorded_account(api: OcmApi, secret: AccessSecret, name: str) -> None:
    """OtherAccount if the cluster of this name, which was not found, may only be hidden from the account of the token."""
    recorded = secret.content.get(ACCOUNT)
    if not recorded or secret.content.get(TOKEN) == _digest(api):
        return
    account = api.account()
    if account != recorded:
        raise OtherAccount(
            f"OpenShift Cluster Manager shows no cluster {name} to the account {account}, and it was created or last read by the account "
            f"{recorded}. Put a token of that account into the Secret {secret.reference} as token; "
            "if the cluster was deleted at the service, remove the key account from the Secret."
        )


def _digest(api: OcmApi) -> str:
    """Changes with the token and with the service that it is for."""
    return hashlib.sha256(f"{api.access.url}\n{api.access.token}".encode()).hexdigest()[:16]
