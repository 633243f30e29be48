"""Objects of OpenShift Cluster Manager as changes show them: no secret at any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.redaction import listed, shown


def test_changes_show_no_secret_at_any_depth() -> None:
    body = {
        "aws": {"account_id": "1", "secret_access_key": "hush"},
        "users": [{"username": "a", "hashed_password": "hush"}],
        "resources": [{"kind": "Secret", "data": {"k": "hush"}, "stringData": {"l": "hush"}}, {"kind": "ConfigMap", "data": {"k": "seen"}}],
    }
    text = json.dumps(shown("Cluster", "n", body))
    assert "hush" not in text
    assert "seen" in text
    assert "hush" not in json.dumps(shown("AddOnInstallation", "n", {"parameters": [{"id": "k", "value": "hush"}]}))


@pytest.mark.parametrize("value", [[{"id": "a"}], {"items": [{"id": "a"}]}])
def test_lists_inside_objects_are_read_in_both_forms(value: Any) -> None:
    assert listed(value) == [{"id": "a"}]
    assert listed(None) == []
