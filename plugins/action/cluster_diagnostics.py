# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Collect diagnostics of an order and its cluster. Documented in the module of the same name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.diagnostics import archive, collect
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.modules import cluster_diagnostics
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_diagnostics.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        namespace, name, dest = parameters["namespace"], parameters["name"], Path(parameters["dest"])
        files = collect(kube, Names.of(parameters), namespace, name, parameters["client"])
        content = archive(f"{namespace}-{name}", files)
        try:
            changed = not dest.is_file() or dest.read_bytes() != content
            if changed and not self.check_mode:
                _write(dest, content)
        except OSError as error:
            return {"failed": True, "msg": f"Cannot write {dest} ({error.strerror}): set dest to a file in an existing folder."}
        return {"changed": changed, "dest": str(dest), "files": sorted(files), "not_read": files["not_read.txt"].splitlines()}


def _write(dest: Path, content: bytes) -> None:
    """Only the owner can read the file, and a reader never sees a part of it."""
    handle, beside = tempfile.mkstemp(dir=dest.parent, prefix=f".{dest.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(beside).replace(dest)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise
