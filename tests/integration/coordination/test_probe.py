"""The probe of an API server: refused credentials are not unreachable, and a silent server gets one short request."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination import probe as coordination_probe
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.probe import api_server_probe


def test_refused_credentials_are_not_reported_as_unreachable(hub: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination_probe, "TIMEOUT_SECONDS", 60)  # what a busy machine may need
    access = yaml.safe_load(hub.kubeconfig.read_text())
    server, authority = (access["clusters"][0]["cluster"][name] for name in ("server", "certificate-authority-data"))
    cluster = {"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}
    content = {"clusters": [cluster], "users": [{"name": "u", "user": {"token": "wrong"}}], "current-context": "x"}
    content["contexts"] = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    assert api_server_probe({"kubeconfig": str(hub.kubeconfig)})() == ("healthy", "")
    assert api_server_probe({"kubeconfig": content})()[0] == "unauthorized"
    cluster["cluster"]["server"] = "https://127.0.0.1:9"
    assert api_server_probe({"kubeconfig": content})()[0] == "unreachable"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_silent_api_server_gets_one_request_with_a_short_timeout(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert coordination_probe.TIMEOUT_SECONDS <= 5
    monkeypatch.setattr(coordination_probe, "TIMEOUT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        found: list[tuple[str, str]] = []
        probe = threading.Thread(target=lambda: found.append(api_server_probe({"host": host, "api_key": "x"})()), daemon=True)
        probe.start()
        connections = [silent.accept()[0]]
        probe.join(60)
        # The probe is over: a second connection would be in the queue.
        silent.setblocking(False)
        with suppress(BlockingIOError):
            connections.append(silent.accept()[0])
        for connection in connections:
            connection.close()
    assert len(connections) == 1
    assert [state for state, _reason in found] == ["unreachable"]
