# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything that can go wrong with an object store and with what clusters agree on in it, as one family; each error says what to do."""

from __future__ import annotations


class S3Error(Exception):
    """The base of the family. `retryable` tells whether the same request may succeed later, unchanged."""

    retryable = False


class BadOptions(S3Error):
    """The connection or a name is described wrongly: no credentials, no such profile, no valid address."""


class Unreachable(S3Error):
    """No answer: wrong address, network down, certificate not trusted, or the connection broke."""

    retryable = True


class ServerError(S3Error):
    """5xx or 429: the store failed to do what it was asked for, or was too busy."""

    retryable = True


class Denied(S3Error):
    """401 or 403: the credentials are not known, or do not allow it."""


class NoSuchBucket(S3Error):
    """The bucket itself is not there."""


class Missing(S3Error):
    """404: an object that was to be replaced is not there."""


class PreconditionFailed(S3Error):
    """409 or 412: somebody else was quicker. It is certain that this write is not what is stored now."""


class Unconfirmed(S3Error):
    """A write without a clear answer, and no answer either when it was looked for: it may be stored, or may still be."""

    retryable = True


class NoConditions(S3Error):
    """The store refuses or ignores conditions on writes, so nothing can be agreed on through it."""


class CoordinationError(S3Error):
    """What clusters agree on, and not the store itself, is in the way."""


class Held(CoordinationError):
    """Somebody else holds the lease. That is no failure: the other does the work."""

    retryable = True


class Fenced(CoordinationError):
    """The epoch of whoever asks is over, so nothing was written; the leader of a later epoch goes on."""


class StaleRevision(CoordinationError):
    """The state has changed since it was read. Read it again, and decide again."""

    retryable = True


class WrongIdentity(CoordinationError):
    """The objects belong to something else whose names make the same key."""


class Malformed(CoordinationError):
    """An object is not what was written here."""
