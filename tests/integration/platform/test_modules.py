"""The modules for Automation Platform in a playbook: the stand-in for the platform, and a real API server for the ledger."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

from ..support.playbooks import play, task

SECRETS = ("of the hub", "of the stream", "of the survey")


def test_document_is_checked_applied_unchanged_exported_and_removed(tmp_path: Path, hub: Access, namespace: str) -> None:
    platform = Platform(gateway=True)
    with platform.serving() as url:
        secrets = {"token": platform.token(), "wanted": document(3)}
        common = {"aap_hostname": url, "aap_token": "{{ token }}"}
        ledger = {"site_namespace": namespace, "ledger": "fleet"}
        tasks = [
            task("platform_configuration", "check", check=True, document="{{ wanted }}", **common, **ledger),
            task("platform_configuration", "apply", document="{{ wanted }}", **common, **ledger),
            task("platform_configuration", "again", document="{{ wanted }}", **common, **ledger),
            task("platform_configuration_info", "export", organization="acme", **common),
            task("platform_configuration", "refuse", document={"controller_label": []}, **common, **ledger),
            task("platform_configuration", "remove", state="absent", **common, **ledger),
        ]
        played = play(tmp_path, tasks, defaults={"kubeconfig": str(hub.kubeconfig)}, secrets=secrets)
    checked, applied = played.fine("check").result, played.fine("apply").result
    assert checked["plan"] == applied["plan"]
    assert checked["table"] == applied["table"]
    assert applied["summary"]["create"] == len(applied["plan"])
    assert "controller_templates: create-0" in applied["diff"]["after"]
    assert not played.fine("again").changed
    assert played.fine("again").result["requests"] <= 20
    assert len(played.fine("export").result["document"]["controller_templates"]) == 3
    assert played["refuse"].message.startswith("The document has 1 problem; nothing was written.")
    assert played["refuse"].result["problems"] == [
        "controller_label is not a key of a document (did you mean controller_labels or controller_roles or controller_templates?): "
        "remove it, or correct its name."
    ]
    assert played.fine("remove").result["summary"]["delete"] == applied["summary"]["create"] - 1  # a label cannot be deleted
    assert hub.kube.find("v1", "Secret", "fleet", namespace) is None
    for secret in SECRETS:
        assert secret not in played.output
