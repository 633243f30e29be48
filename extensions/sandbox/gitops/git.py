"""Git of this machine, or of its Debian package."""

from __future__ import annotations

from .. import debian
from ..screen import UserError

# Neither the user's settings nor the machine's change what the sandbox does; nothing asks at a terminal. Not /dev/null:
# git replaces the file of its global settings when it writes them, which root may do there too.
NO_FILE = "/nonexistent/gitconfig"
SETTINGS = {"GIT_CONFIG_GLOBAL": NO_FILE, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def git_command(*arguments: str) -> list[str]:
    return [str(_program().path), *arguments]


def git_environment() -> dict[str, str]:
    """What to add to the environment of a git command."""
    program = _program()
    # An unpacked one looks for its parts where the package would have installed them.
    folder = program.path.parents[1]
    paths = {"GIT_EXEC_PATH": str(folder / "lib" / "git-core"), "GIT_TEMPLATE_DIR": str(folder / "share" / "git-core" / "templates")}
    return SETTINGS | program.environment | (paths if program.environment else {})


def _program() -> debian.Unpacked:
    program = debian.find(debian.GIT)
    if program is None:
        raise UserError("git is missing and cannot be had from Debian's packages: install git.")
    return program
