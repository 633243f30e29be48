# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The connection to OpenShift Cluster Manager for one cluster: with the credentials in the Secret beside it, or with those of a request."""

from __future__ import annotations

from functools import cached_property

from ..base import ClusterRef
from ..model import ClusterRequest
from .account import account_record
from .api import Access, OcmApi
from .arguments import access_of
from .secret import AccessSecret


class Connection:
    """The Secret and the API, each read or connected when it is first used. `use_credentials_of` replaces `api`, so do not keep it."""

    def __init__(self, ref: ClusterRef) -> None:
        self._ref = ref

    @cached_property
    def secret(self) -> AccessSecret:
        return AccessSecret(self._ref)

    @cached_property
    def api(self) -> OcmApi:
        return OcmApi(self.secret.access())

    def use_credentials_of(self, request: ClusterRequest) -> None:
        self.api = OcmApi(Access(**access_of(request, self.secret)))
        self.api.hide(str(value) for value in request.secrets.values() if value)

    def record_of(self, request: ClusterRequest) -> dict[str, str]:
        """What the Secret records of a request: its credentials, and their account where that is not recorded."""
        return access_of(request, self.secret) | account_record(self.api, self.secret)
