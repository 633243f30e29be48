"""The token of Gitea's administrator is found in whatever its command prints."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.gitea import token_of
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import ProcessDied

TOKEN = "0f" * 20
WARNING = "2026/01/01 00:00:00 modules/setting/setting.go:198:loadRunModeFrom() [W] You have been warned against this."


@pytest.mark.parametrize("output", [f"{TOKEN}\n", f"{WARNING}\n{TOKEN}\n", f"{TOKEN}\n{WARNING}\n"])
def test_the_token_is_found_before_and_after_a_logged_warning(output: str) -> None:
    assert token_of(output) == TOKEN


def test_output_without_a_token_is_refused() -> None:
    with pytest.raises(ProcessDied, match="created no token"):
        token_of(f"{WARNING}\n")
