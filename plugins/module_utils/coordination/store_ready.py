# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an event source does first: it waits until the store answers, and does not run on one that loses conditions."""

from __future__ import annotations

import asyncio
import logging

from ..s3.errors import S3Error
from ..s3.store import ObjectStore
from ..s3.store_check import full_check, require_passed
from .settings import Settings

RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


async def require_store(store: ObjectStore, settings: Settings) -> None:
    """Retry until the store answers. Raise if it does not honour conditional writes."""
    name = f"Bucket {settings.store['bucket']} at {settings.store.get('endpoint_url') or 'AWS'}"
    while True:
        try:
            require_passed(await asyncio.to_thread(full_check, store), name)
            return
        except S3Error as error:
            if not error.retryable:
                raise
            log.error("%s: %s", name, error)
            await asyncio.sleep(RETRY_SECONDS)
