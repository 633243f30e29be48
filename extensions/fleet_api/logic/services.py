"""What every operation needs of the service, wired once at its start."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings import Settings
from ..stores.access import Access
from ..stores.caches import FleetCaches
from ..stores.changes import ClusterChanges
from ..stores.cluster_source import ClusterSource
from ..stores.home import Home
from ..stores.hub_requests import HubRequests
from ..stores.tokens import Authenticator
from .stream_limit import StreamLimit
from .tenants import Tenants


@dataclass(frozen=True)
class Services:
    settings: Settings
    home: Home
    caches: FleetCaches
    changes: ClusterChanges
    access: Access
    tenants: Tenants
    authenticator: Authenticator
    streams: StreamLimit
    source: ClusterSource
    requests: HubRequests
