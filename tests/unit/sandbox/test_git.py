"""How the sandbox calls git: without the settings of the user, and with no file that git could replace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.git import git_command, git_environment


def test_global_settings_can_neither_be_read_nor_written(tmp_path: Path) -> None:
    assert not Path(git_environment()["GIT_CONFIG_GLOBAL"]).parent.exists()
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = User\n")
    environment = os.environ | {"HOME": str(tmp_path)} | git_environment()

    def config(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = git_command("config", "--global", *arguments)
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert config("user.name", "Another").returncode != 0
    assert not config("user.name").stdout
