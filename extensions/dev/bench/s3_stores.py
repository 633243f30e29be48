"""The S3 servers to measure: the sandbox's own, and others that are on PATH."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.exceptions

from ...sandbox.access import until
from ...sandbox.processes import free_port
from ...sandbox.sandbox import Sandbox

Options = dict[str, Any]
BUCKET = "bench"


@contextlib.contextmanager
def stores(sandbox: Sandbox) -> Iterator[dict[str, Options]]:
    """The options of each server by its name, with an empty bucket. The sandbox runs already."""
    sandbox.up(s3=True)
    own = sandbox.s3()
    found = {"versitygw": options(own.endpoint, own.access_key, own.secret_key)}
    with contextlib.ExitStack() as stack:
        for name in ("minio", "moto_server"):
            if program := shutil.which(name):
                found[name] = stack.enter_context(other(name, program))
        for described in found.values():
            until(lambda described=described: has_bucket(described), "the bucket exists", 60)  # type: ignore[misc]
        yield found


def options(endpoint: str, access_key: str, secret_key: str) -> Options:
    return {"bucket": BUCKET, "endpoint_url": endpoint, "region": "us-east-1", "access_key": access_key, "secret_key": secret_key}


@contextlib.contextmanager
def other(name: str, program: str) -> Iterator[Options]:
    port, access, secret = free_port(), secrets.token_hex(8), secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder:
        arguments = {
            "minio": ["server", folder, "--address", f"127.0.0.1:{port}", "--quiet"],
            "moto_server": ["-H", "127.0.0.1", "-p", str(port)],
        }[name]
        environment = os.environ | {"MINIO_ROOT_USER": access, "MINIO_ROOT_PASSWORD": secret}
        process = subprocess.Popen([program, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield options(f"http://127.0.0.1:{port}", access, secret)
        finally:
            process.kill()
            process.wait()


def has_bucket(described: Options) -> bool:
    client = boto3.client(
        "s3",
        endpoint_url=described["endpoint_url"],
        region_name=described["region"],
        aws_access_key_id=described["access_key"],
        aws_secret_access_key=described["secret_key"],
    )
    try:
        client.create_bucket(Bucket=BUCKET)
    except client.exceptions.ClientError as error:
        return str(error.response["Error"]["Code"]) in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")
    except (botocore.exceptions.ConnectionError, botocore.exceptions.HTTPClientError):
        # The server has not started yet.
        return False
    return True
