"""Flux's own notification-controller signs what it posts, and the webhook server accepts it for that order."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import GitServer
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.gitops_notifications import GitOpsNotifications
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Webhook
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.webhook_server import WebhookServer
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.notification_key import address_of, ensure_site_key, key_of
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.objects import sync_objects
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.request import GitOpsRequest, GitSource, Notifications

UID = "7c0e8c0a-7f0c-4d8e-9d0f-1d7a0c6a3f11"


@contextlib.contextmanager
def engine(cluster: Access, site: str, notified: list[str]) -> Iterator[str]:
    """A webhook server in a thread of its own, which finds the key of the site in this namespace; its address."""
    loop = asyncio.new_event_loop()
    notifications = GitOpsNotifications(cluster.kube, site, notified.append)
    server = WebhookServer(Webhook(port=0), Metrics(State), lambda _order: None, list, notifications)
    task = loop.create_task(server.serve())

    def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        until(lambda: server.port, "the webhook server listens")
        yield f"http://127.0.0.1:{server.port}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


@pytest.fixture
def namespace(flux_cluster: Access) -> Iterator[str]:
    with fresh_namespace(flux_cluster) as name:
        yield name
        flux_cluster.kubectl("delete", "kustomizations,gitrepositories", "--all", "-n", name)


def test_flux_signs_its_notifications_with_the_key_of_its_cluster(flux_cluster: Access, git_server: GitServer, namespace: str) -> None:
    notified: list[str] = []
    repository = git_server.repository(namespace)
    repository.commit({"apps/config.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: notified, namespace: {namespace}}}\n"})
    key = key_of(ensure_site_key(flux_cluster.kube, namespace), UID)
    with engine(flux_cluster, namespace, notified) as address:
        secret = {
            key: base64.b64encode(text.encode()).decode() for key, text in repository.secret("unused", namespace)["stringData"].items()
        }
        source = GitSource.of({"url": repository.url, "path": "./apps"})
        request = GitOpsRequest(source, secret, notifications=Notifications(address_of(address, UID), key))
        for item in sync_objects(request, namespace):
            flux_cluster.kube.apply(item, force=True)
        until(lambda: notified, "Flux has notified the engine")
    assert set(notified) == {UID}
