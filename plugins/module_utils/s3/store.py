# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A small conditional object store on S3: each write happens if nothing was there, or if nothing has changed, or not at all.

A write whose answer is lost, or is a refusal, may have happened all the same: a network, a proxy or a server may have sent it twice. So
each such write is looked for: is what is stored the very same content, the write has succeeded. Contents must therefore differ from write
to write, which the documents of `coordination` do by a random number in each.

The SDK never repeats a request by itself. What it repeats blindly would be refused by its own first success.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .errors import (
    BadOptions,
    Denied,
    Missing,
    NoConditions,
    NoSuchBucket,
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

# Together five seconds at most: a request that hangs must end while there is time for another, before a lease does.
CONNECT_SECONDS = 2.0
READ_SECONDS = 2.5
CONNECTIONS = 16
READ_TRIES = 2

# Of these not all come with a status that says so; the last is what versitygw says of an unknown access key.
REFUSED = frozenset(
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
class Stored:
    """An object as it is, or was, in the store."""

    body: bytes
    etag: str


class Bucket(Protocol):
    """The requests a store answers, one request for each call."""

    def read(self, key: str, known: Stored | None = None) -> Stored | None:
        """The object, None if there is none, and `known` itself if it is still that: then its content is not sent again."""

    def write(self, key: str, body: bytes, match: str | None) -> str:
        """Write if the object still has the ETag `match`, or with None if there is no object. The answer is the new ETag."""

    def keys(self, prefix: str) -> list[str]:
        """All keys that begin so, sorted."""

    def remove(self, key: str) -> None:
        """Take the object away; one that is not there is no error."""


class ObjectStore:
    """Reads are tried twice, writes are sent once and looked for when it is not clear whether they happened."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def get(self, key: str, known: Stored | None = None) -> Stored | None:
        """The object; None if there is none; `known` itself if nothing has changed since."""
        return _again(lambda: self._bucket.read(key, known))

    def create(self, key: str, body: bytes) -> Stored:
        """Write what must not be there yet; PreconditionFailed if it is."""
        return self._write(key, body, None)

    def replace(self, key: str, body: bytes, known: Stored) -> Stored:
        """Write over what must still be `known`; PreconditionFailed if it has changed, Missing if it is gone."""
        return self._write(key, body, known.etag)

    def keys(self, prefix: str) -> list[str]:
        return _again(lambda: self._bucket.keys(prefix))

    def delete(self, key: str) -> None:
        _again(lambda: self._bucket.remove(key))

    def _write(self, key: str, body: bytes, match: str | None) -> Stored:
        try:
            return Stored(body, self._bucket.write(key, body, match))
        except (PreconditionFailed, ServerError, Unreachable) as error:
            found = self._look_for(key, error)
            if found and found.body == body:
                return found
            raise

    def _look_for(self, key: str, error: S3Error) -> Stored | None:
        try:
            return self.get(key)
        except S3Error as second:
            raise Unconfirmed(f"{error} Whether it was written all the same is not known: {second}") from second


def _again(call: Callable[[], Result]) -> Result:
    """What only reads, or can be done twice, is."""
    for _attempt in range(READ_TRIES - 1):
        try:
            return call()
        except (ServerError, Unreachable):
            continue
    return call()


def connect(options: Mapping[str, Any], connections: int = CONNECTIONS) -> ObjectStore:
    """The store that `options` describe, by the names that amazon.aws has for them; what is not given comes from AWS's own settings."""
    return ObjectStore(BotoBucket(options, connections))


class BotoBucket:
    """One bucket over boto3, with at most `connections` connections."""

    def __init__(self, options: Mapping[str, Any], connections: int) -> None:
        if MISSING_LIBRARY:
            raise BadOptions(f"The Python package {MISSING_LIBRARY} is missing: install boto3 1.40 or newer where Ansible runs.")
        self._name = str(options["bucket"])
        self._encryption = _encryption(options)
        try:
            self._client = _client(options, connections)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise BadOptions(f"The bucket {self._name} cannot be reached as described: {error}") from error
        self._where = str(self._client.meta.endpoint_url)

    def read(self, key: str, known: Stored | None = None) -> Stored | None:
        condition = {"IfNoneMatch": known.etag} if known else {}
        try:
            answer = self._client.get_object(Bucket=self._name, Key=key, **condition)
            return Stored(answer["Body"].read(), answer["ETag"])
        except botocore.exceptions.ClientError as error:
            if _status(error) == 304:
                return known
            if _code(error) == "NoSuchKey":
                return None
            raise self._error("GET", key, error) from error
        except botocore.exceptions.BotoCoreError as error:
            raise self._error("GET", key, error) from error

    def write(self, key: str, body: bytes, match: str | None) -> str:
        condition = {"IfMatch": match} if match else {"IfNoneMatch": "*"}
        arguments = {"Bucket": self._name, "Key": key, "Body": body, "ContentType": "application/json"}
        answer = self._call("PUT", key, self._client.put_object, arguments | condition | self._encryption)
        return str(answer["ETag"])

    def keys(self, prefix: str) -> list[str]:
        found: list[str] = []
        following: dict[str, str] = {}
        while True:
            page = self._call("LIST", prefix, self._client.list_objects_v2, {"Bucket": self._name, "Prefix": prefix} | following)
            found += [item["Key"] for item in page.get("Contents", [])]
            if not page.get("IsTruncated"):
                return sorted(found)
            following = {"ContinuationToken": page["NextContinuationToken"]}

    def remove(self, key: str) -> None:
        self._call("DELETE", key, self._client.delete_object, {"Bucket": self._name, "Key": key})

    def _call(self, verb: str, key: str, method: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        try:
            return method(**arguments)
        except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
            raise self._error(verb, key, error) from error

    def _error(self, verb: str, key: str, error: Exception) -> S3Error:
        what = f"{verb} {key} in bucket {self._name} at {self._where}"
        if isinstance(error, botocore.exceptions.ClientError):
            return _refusal(what, error)
        asked = (
            botocore.exceptions.HTTPClientError,
            botocore.exceptions.ConnectionError,
            botocore.exceptions.ResponseStreamingError,
            botocore.exceptions.IncompleteReadError,
        )
        if isinstance(error, asked):
            return Unreachable(f"{what}: {error}. Check the address, the network and the certificate.")
        return BadOptions(f"{what}: {error}")


def _refusal(what: str, error: Any) -> S3Error:
    status, code = _status(error), _code(error)
    said = str(error.response.get("Error", {}).get("Message") or code or status)
    message = f"{what}: {said.rstrip('.')}"
    if status in (409, 412):
        return PreconditionFailed(f"{message} (somebody else has written it).")
    if code == "NoSuchBucket":
        return NoSuchBucket(f"{what}: there is no such bucket. Create it, or name another.")
    if status in (401, 403) or code in REFUSED:
        return Denied(f"{message}. Check the credentials, and what their policy allows: reading, writing, listing, deleting.")
    if status == 404:
        return Missing(f"{message}.")
    if status == 501 or code == "NotImplemented":
        return NoConditions(f"{message}. The store does not know conditional writes, so nothing can be agreed on through it.")
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
        raise BadOptions("encryption_kms_key_id is given, but encryption_mode is not aws:kms.")
    return ({"ServerSideEncryption": mode} if mode else {}) | ({"SSEKMSKeyId": key} if key else {})


def _client(options: Mapping[str, Any], connections: int) -> Any:
    session = boto3.session.Session(
        aws_access_key_id=options.get("access_key"),
        aws_secret_access_key=options.get("secret_key"),
        aws_session_token=options.get("session_token"),
        region_name=options.get("region") or os.environ.get("AWS_REGION"),
        profile_name=options.get("profile"),
    )
    named = options.get("endpoint_url"), os.environ.get("AWS_ENDPOINT_URL_S3"), os.environ.get("AWS_ENDPOINT_URL")
    endpoint = next(filter(None, named), None)
    path_style = options.get("path_style")
    # Stores that are not AWS's seldom have a host name for each bucket.
    style = "path" if path_style or (path_style is None and endpoint) else "auto"
    config = botocore.config.Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        s3={"addressing_style": style},
        # Older stores refuse the checksums that newer SDKs add where nobody has asked for any.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    checked: Any = False if options.get("validate_certs") is False else options.get("aws_ca_bundle")
    return session.client("s3", endpoint_url=endpoint, verify=checked, config=config)
