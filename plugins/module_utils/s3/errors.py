# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The error family of the object store and of S3 coordination. Each message says what failed, why, and what to do."""

from __future__ import annotations


class S3Error(Exception):
    """The base of the family. `retryable` says whether the same request may succeed later, unchanged."""

    retryable = False


class BadOptions(S3Error):
    """A connection option or a name is invalid: no credentials, no such profile, no valid address."""


class Unreachable(S3Error):
    """No answer: wrong address, network down, certificate not trusted, or the connection broke."""

    retryable = True


class ServerError(S3Error):
    """5xx or 429: the store failed, or was too busy."""

    retryable = True


class AccessDenied(S3Error):
    """401 or 403: the store does not know the credentials, or their policy does not allow the request."""


class NoSuchBucket(S3Error):
    """The bucket does not exist."""


class NoSuchKey(S3Error):
    """404: the object to replace does not exist."""


class PreconditionFailed(S3Error):
    """409 or 412: another writer was first. This write is certainly not what is stored now."""


class Unconfirmed(S3Error):
    """The write got no clear answer, and neither did the read that checks it. It may be stored, now or later."""

    retryable = True


class ConditionalWritesUnsupported(S3Error):
    """The store refuses or ignores conditions on writes, so it cannot be used for coordination."""


class CoordinationError(S3Error):
    """The store works; the stored coordination documents do not allow the request."""


class LeaseHeld(CoordinationError):
    """Another holder has the lease. This is no failure: that holder does the work."""

    retryable = True


class Fenced(CoordinationError):
    """The caller's epoch is over, so nothing was written. The leader of a later epoch continues."""


class StaleRevision(CoordinationError):
    """The state has changed since it was read. Read it again and decide again."""

    retryable = True


class WrongIdentity(CoordinationError):
    """The object belongs to another workload or cluster whose name makes the same key."""


class Malformed(CoordinationError):
    """The object was not written by this collection."""
