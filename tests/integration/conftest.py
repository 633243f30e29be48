"""What the tests of cluster orders share beyond the sandbox: a hub without processes for HostedClusters, and orders on it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.loaders
import botocore.session
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox, StoreAccess

from .support.deployment import install
from .support.leftovers import Leftovers
from .support.orders import Orders
from .support.replication import Protected, protected
from .support.s3_proxy import Proxy, proxy_to

_buckets = itertools.count(1)
_leftovers: list[Leftovers] = []


@pytest.fixture(scope="session")
def quick_sandbox(new_sandbox: Callable[..., Sandbox]) -> Sandbox:
    """A sandbox whose HostedClusters become available at once, because nothing runs behind them."""
    return new_sandbox(status_only=True)


@pytest.fixture(scope="session")
def quick_hub(quick_sandbox: Sandbox) -> Access:
    """The hub of that sandbox, with the shipped roles and policies, as a site has them."""
    hub = Access(quick_sandbox.kubeconfig())
    install(hub)
    _leftovers.append(Leftovers(hub))
    return hub


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    """The tests of a file leave nothing on the quick hub, which those of other files find."""
    yield
    for leftovers in _leftovers:
        assert not (left := leftovers.new()), f"these tests left {', '.join(left)}"


@pytest.fixture
def orders(quick_hub: Access, tmp_path: Path) -> Iterator[Orders]:
    """A namespace of the quick hub for orders, and the playbooks that reconcile them."""
    with fresh_namespace(quick_hub) as namespace:
        created = Orders(quick_hub, namespace, tmp_path)
        yield created
        created.clean_up()


@pytest.fixture(scope="session")
def dr_sites(sandbox: Sandbox) -> dict[str, Access]:
    """Two clusters with stand-in replication between them, and the sandbox's S3."""
    names = ("east", "west")
    sandbox.up(clusters=names, replication=True)
    return {name: Access(sandbox.kubeconfig(name)) for name in names}


@pytest.fixture
def application(dr_sites: dict[str, Access]) -> Iterator[Protected]:
    """An application in a new namespace of both clusters, which the test protects."""
    with protected(dr_sites) as created:
        yield created


@pytest.fixture(scope="session")
def s3_client(s3: StoreAccess) -> Iterator[Any]:
    """One client to create buckets with. While it lives, all clients share what boto3 parses for each of them."""
    secrets = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.loaders.create_loader))
        yield boto3.client("s3", endpoint_url=s3.endpoint, region_name=s3.region, **secrets)


@pytest.fixture
def bucket(s3: StoreAccess, s3_client: Any) -> dict[str, str]:
    """A new bucket of the sandbox's S3, as the options of our modules."""
    name = f"test-{next(_buckets)}"
    s3_client.create_bucket(Bucket=name)
    return {
        "bucket": name,
        "endpoint_url": s3.endpoint,
        "region": s3.region,
        "access_key": s3.access_key,
        "secret_key": s3.secret_key,
    }


@pytest.fixture
def faulty(s3: StoreAccess, bucket: dict[str, str]) -> Iterator[tuple[Proxy, dict[str, str]]]:
    """A proxy that injects faults, and the bucket as reached through it."""
    with proxy_to(s3) as (proxy, address):
        yield proxy, bucket | {"endpoint_url": address}
