# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Imports of projects: templates need the playbooks of a project, and activations its rulebooks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from ..common.types import Object
from ..kube.errors import Conflict, ServerError
from .client import PlatformApi
from .kinds import EDA_PROJECTS, PROJECTS
from .model import Kind
from .plan import Change

POLL_SECONDS = 1.0
IMPORTED, FAILED = ("successful", "ok", "completed"), ("failed", "error", "canceled", "missing")
UNFINISHED = ("new", "pending", "waiting", "running")
SOURCE = ("scm_", "url", "credential", "eda_credential")  # how the fields begin that change what is imported


def wait_until_imported(api: PlatformApi, change: Change, current: Object) -> None:
    """Wait until the platform has the content of a project whose source is new."""
    is_new = any(name.startswith(SOURCE) for name in change.compared.body)
    if not is_new or change.kind.key not in (PROJECTS, EDA_PROJECTS) or (change.kind.key == PROJECTS and not current.get("scm_type")):
        return
    if change.kind.key == EDA_PROJECTS and change.action == "update":
        _start(api, change.kind, current["id"], change.called, "sync")
    _wait(api, change.kind, current["id"], change.called)


def wait_for_imports(api: PlatformApi, projects: Iterable[tuple[Kind, Object]]) -> None:
    """Wait for the imports that an earlier run, which was killed, has started."""
    for kind, current in projects:
        if state_of(current) in UNFINISHED:
            _wait(api, kind, current["id"], f"{kind.title} {current.get('name')}")


def state_of(project: Object) -> str:
    return str(project.get("status") or project.get("import_state") or "")


def _wait(api: PlatformApi, kind: Kind, identity: int, called: str) -> None:
    asked = False
    while True:
        found = api.get(kind.api, f"{kind.path}/{identity}", f"read {called}")
        if state_of(found) in IMPORTED:
            return
        if state_of(found) in FAILED:
            reason = str(found.get("import_error") or "see its last job on the platform")
            raise ServerError(f"The {called} could not be imported: {reason}. Check its address, branch and credential.")
        if state_of(found) == "never updated" and not asked:
            asked = True
            _start(api, kind, identity, called, "update")
        api.seconds_left()
        time.sleep(POLL_SECONDS)


def _start(api: PlatformApi, kind: Kind, identity: int, called: str, action: str) -> None:
    with contextlib.suppress(Conflict):  # it is being imported already
        api.post(kind.api, f"{kind.path}/{identity}/{action}", f"import {called}", {}, repeatable=True)
