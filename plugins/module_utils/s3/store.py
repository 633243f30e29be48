# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A conditional object store on S3: creates an object only if there is none, replaces one only if it is unchanged.

A write whose answer is lost, or is a refusal, may still have succeeded: a network, a proxy or a server may have sent it
twice. So the store reads the object back after such a write. If the stored content is the same, the write has
succeeded. Contents must therefore differ from write to write; the documents of `coordination` have a nonce for this.

The SDK never retries by itself: its retry would be refused because of its own first success.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .deadline import Deadline, Late
from .errors import (
    AccessDenied,
    BadOptions,
    ConditionalWritesUnsupported,
    NoSuchBucket,
    NoSuchKey,
    PreconditionFailed,
    S3Error,
    ServerError,
    Unconfirmed,
    Unreachable,
)

try:
    import boto3
    import botocore.config
    import botocore.exceptions

    MISSING_LIBRARY = ""
except ImportError as error:
    boto3 = botocore = None
    MISSING_LIBRARY = str(error.name)

# Less than five seconds: a request that hangs, or whose answer comes byte by byte, must end early enough for another
# one before a lease ends. The time-outs of the SDK are for one read each.
CONNECT_SECONDS = 2.0
READ_SECONDS = 2.5
REQUEST_SECONDS = CONNECT_SECONDS + READ_SECONDS
# For the access log of the store. The SDK composes its own name for each request, an eighth of what a read costs.
USER_AGENT = "openfleet.clusters"
CONNECTIONS = 16
CALLS_PER_CONNECTION = 4  # abandoned ones included
# Documents of this collection have some thousand bytes.
OBJECT_BYTES = 2**23
READ_ATTEMPTS = 2
# The largest page that S3 returns.
LIST_PAGE = 1000

# Not all of these come with status 401 or 403. versitygw answers the last one for an unknown access key.
ACCESS_DENIED_CODES = frozenset(
    {
        "AccessDenied",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "TokenRefreshRequired",
        "XAdminUserNotFound",
    }
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class StoredObject:
    """One version of an object."""

    body: bytes
    etag: str


class Bucket(Protocol):
    """The requests to one bucket, one request for each call."""

    def read(self, key: str, known: StoredObject | None = None) -> StoredObject | None:
        """Return the object, or None. Return `known` itself if it is unchanged; the store then sends no content."""

    def write(self, key: str, body: bytes, match: str | None) -> str:
        """Write if the object still has the ETag `match`, or if `match` is None and there is no object.

        Return the new ETag.
        """

    def keys(self, prefix: str) -> list[str]:
        """Return all keys with this prefix, sorted."""

    def delete(self, key: str) -> None:
        """Delete the object. A missing object is no error."""


class ObjectStore:
    """Retries reads once, sends writes once, and reads back a write without a clear answer."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def get(self, key: str, known: StoredObject | None = None) -> StoredObject | None:
        """Return the object, None if there is none, or `known` itself if it is unchanged."""
        return _retry(lambda: self._bucket.read(key, known))

    def create(self, key: str, body: bytes) -> StoredObject:
        """Create the object; PreconditionFailed if it exists."""
        return self._write(key, body, None)

    def replace(self, key: str, body: bytes, known: StoredObject) -> StoredObject:
        """Replace `known`; PreconditionFailed if the object has changed, NoSuchKey if there is none."""
        return self._write(key, body, known.etag)

    def keys(self, prefix: str) -> list[str]:
        return _retry(lambda: self._bucket.keys(prefix))

    def delete(self, key: str) -> None:
        _retry(lambda: self._bucket.delete(key))

    def _write(self, key: str, body: bytes, match: str | None) -> StoredObject:
        try:
            return StoredObject(body, self._bucket.write(key, body, match))
        except (PreconditionFailed, ServerError, Unreachable) as error:
            stored = self._read_back(key, error)
            if stored and stored.body == body:
                return stored
            raise

    def _read_back(self, key: str, error: S3Error) -> StoredObject | None:
        try:
            return self.get(key)
        except S3Error as second:
            raise Unconfirmed(f"{error} Reading it back failed too, so the write may have succeeded: {second}") from second


def _retry(call: Callable[[], Result]) -> Result:
    """Retry a request that may be sent twice."""
    for _attempt in range(READ_ATTEMPTS - 1):
        try:
            return call()
        except (ServerError, Unreachable):
            continue
    return call()


def connect(options: Mapping[str, Any], connections: int = CONNECTIONS) -> ObjectStore:
    """Connect to the store that `options` describe.

    Option names are those of amazon.aws; AWS's own settings fill the gaps.
    """
    return ObjectStore(BotoBucket(options, connections))


class BotoBucket:
    """One bucket through boto3, over at most `connections` connections."""

    def __init__(self, options: Mapping[str, Any], connections: int) -> None:
        if MISSING_LIBRARY:
            raise BadOptions(f"The Python package {MISSING_LIBRARY} is missing: install boto3 1.40 or newer on the Ansible controller.")
        self._name = str(options["bucket"])
        self._encryption = _encryption(options)
        try:
            self._client = _client(options, connections)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise BadOptions(f"The options of bucket {self._name} are invalid: {error}") from error
        self._endpoint = str(self._client.meta.endpoint_url)
        self._deadline = Deadline(REQUEST_SECONDS, CALLS_PER_CONNECTION * connections)

    def read(self, key: str, known: StoredObject | None = None) -> StoredObject | None:
        condition = {"IfNoneMatch": known.etag} if known else {}
        try:
            return self._deadline.call(lambda: self._get(key, condition))
        except Late as error:
            raise self._late("GET", key, error) from None
        except botocore.exceptions.ClientError as error:
            if _status(error) == 304:
                return known
            if _code(error) == "NoSuchKey":
                return None
            raise self._error("GET", key, error) from error
        except botocore.exceptions.BotoCoreError as error:
            raise self._error("GET", key, error) from error

    def _get(self, key: str, condition: Mapping[str, str]) -> StoredObject:
        answer = self._client.get_object(Bucket=self._name, Key=key, **condition)
        body = answer["Body"].read(OBJECT_BYTES + 1)
        if len(body) > OBJECT_BYTES:
            raise S3Error(f"GET {key} in bucket {self._name} at {self._endpoint}: the object has more than {OBJECT_BYTES:,} bytes.")
        return StoredObject(body, answer["ETag"])

    def write(self, key: str, body: bytes, match: str | None) -> str:
        condition = {"IfMatch": match} if match else {"IfNoneMatch": "*"}
        arguments = {"Bucket": self._name, "Key": key, "Body": body, "ContentType": "application/json"}
        answer = self._call("PUT", key, self._client.put_object, arguments | condition | self._encryption)
        return str(answer["ETag"])

    def keys(self, prefix: str) -> list[str]:
        keys: list[str] = []
        continuation: dict[str, str] = {}
        while True:
            arguments = {"Bucket": self._name, "Prefix": prefix, "MaxKeys": LIST_PAGE} | continuation
            page = self._call("LIST", prefix, self._client.list_objects_v2, arguments)
            keys += [item["Key"] for item in page.get("Contents", [])]
            if not page.get("IsTruncated"):
                return sorted(keys)
            continuation = {"ContinuationToken": page["NextContinuationToken"]}

    def delete(self, key: str) -> None:
        self._call("DELETE", key, self._client.delete_object, {"Bucket": self._name, "Key": key})

    def _call(self, verb: str, key: str, method: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        try:
            return self._deadline.call(lambda: method(**arguments))
        except Late as error:
            raise self._late(verb, key, error) from None
        except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
            raise self._error(verb, key, error) from error

    def _late(self, verb: str, key: str, error: Late) -> S3Error:
        return Unreachable(f"{verb} {key} in bucket {self._name} at {self._endpoint}: {error}. Check the address and the network.")

    def _error(self, verb: str, key: str, error: Exception) -> S3Error:
        request = f"{verb} {key} in bucket {self._name} at {self._endpoint}"
        if isinstance(error, botocore.exceptions.ClientError):
            return _client_error(request, error)
        connection_errors = (
            botocore.exceptions.HTTPClientError,
            botocore.exceptions.ConnectionError,
            botocore.exceptions.ResponseStreamingError,
            botocore.exceptions.IncompleteReadError,
        )
        if isinstance(error, connection_errors):
            return Unreachable(f"{request}: {error}. Check the address, the network and the certificate.")
        return BadOptions(f"{request}: {error}")


def _client_error(request: str, error: Any) -> S3Error:
    status, code = _status(error), _code(error)
    reason = str(error.response.get("Error", {}).get("Message") or code or status)
    message = f"{request}: {reason.rstrip('.')}"
    if status in (409, 412):
        return PreconditionFailed(f"{message} (another writer was first).")
    if code == "NoSuchBucket":
        return NoSuchBucket(f"{request}: the bucket does not exist. Create it, or set another bucket.")
    if status in (401, 403) or code in ACCESS_DENIED_CODES:
        return AccessDenied(f"{message}. Check the credentials; their policy must allow get, put, list and delete.")
    if status == 404:
        return NoSuchKey(f"{message}.")
    if status == 501 or code == "NotImplemented":
        return ConditionalWritesUnsupported(f"{message}. The store does not support conditional writes: use another store.")
    if status >= 500 or status == 429 or code in ("SlowDown", "RequestTimeout"):
        return ServerError(f"{message} (HTTP status {status}).")
    return S3Error(f"{message} (HTTP status {status}).")


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _encryption(options: Mapping[str, Any]) -> dict[str, str]:
    mode, key = options.get("encryption_mode"), options.get("encryption_kms_key_id")
    if key and mode != "aws:kms":
        raise BadOptions("encryption_kms_key_id needs encryption_mode aws:kms: set both.")
    return ({"ServerSideEncryption": mode} if mode else {}) | ({"SSEKMSKeyId": key} if key else {})


def _client(options: Mapping[str, Any], connections: int) -> Any:
    session = boto3.session.Session(
        aws_access_key_id=options.get("access_key"),
        aws_secret_access_key=options.get("secret_key"),
        aws_session_token=options.get("session_token"),
        region_name=options.get("region") or os.environ.get("AWS_REGION"),
        profile_name=options.get("profile"),
    )
    endpoints = options.get("endpoint_url"), os.environ.get("AWS_ENDPOINT_URL_S3"), os.environ.get("AWS_ENDPOINT_URL")
    endpoint = next(filter(None, endpoints), None)
    path_style = options.get("path_style")
    # Stores other than AWS seldom have a host name for each bucket.
    style = "path" if path_style or (path_style is None and endpoint) else "auto"
    config = botocore.config.Config(
        user_agent=USER_AGENT,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        s3={"addressing_style": style},
        # Older stores refuse the checksums that newer SDKs add by default.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    verify: Any = False if options.get("validate_certs") is False else options.get("aws_ca_bundle")
    return session.client("s3", endpoint_url=endpoint, verify=verify, config=config)
