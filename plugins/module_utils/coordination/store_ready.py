# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an event source does first: it waits until the store answers, and does not run on one that loses conditions."""

from __future__ import annotations

import asyncio
import logging

from ..s3.errors import BadOptions, ConditionalWritesUnsupported, S3Error
from ..s3.store import ObjectStore
from ..s3.store_check import full_check, require_passed
from .settings import Settings

FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 1.0, 30.0
# Only a change of the options, or another store, helps.
FINAL = (BadOptions, ConditionalWritesUnsupported)

log = logging.getLogger(__name__)


async def require_store(store: ObjectStore, settings: Settings) -> None:
    """Retry until the store answers, and has the bucket. Raise if it does not honour conditional writes."""
    name = f"Bucket {settings.store['bucket']} at {settings.store.get('endpoint_url') or 'AWS'}"
    wait = FIRST_RETRY_SECONDS
    while True:
        try:
            require_passed(await asyncio.to_thread(full_check, store), name)
            return
        except FINAL:
            raise
        except S3Error as error:
            log.error("%s: %s Nothing is led until then; retry in %.0f s", name, error, wait)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LAST_RETRY_SECONDS)
