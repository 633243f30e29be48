# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What must be true before a plan is applied: a licence and the permissions. It reads, and writes nothing."""

from __future__ import annotations

from ..kube.errors import Forbidden
from .client import PlatformApi
from .errors import NotLicensed, NotPermitted
from .model import Kind
from .plan import Plan


def check(api: PlatformApi, plan: Plan) -> None:
    """NotLicensed, or NotPermitted with everything that the account may not do."""
    kinds = {change.kind.key: change.kind for change in plan.changes}
    if any(kind.api == "controller" for kind in kinds.values()) or plan.roles:
        _check_licence(api)
        account = (api.get("controller", "me", "read the account").get("results") or [{}])[0]
        if account.get("is_superuser"):
            return
    problems = [problem for change in plan.changes if (problem := _refused(change.current, change.action, change.called))]
    new = {change.kind.key: change.kind for change in plan.changes if change.action == "create"}
    problems += [f"create a {kind.title}" for kind in new.values() if not _may_create(api, kind)]
    if problems:
        raise NotPermitted(
            f"The account may not {'; nor '.join(problems)}. Nothing was written: grant its permission, or use an account that has it."
        )


def _check_licence(api: PlatformApi) -> None:
    licence = api.get("controller", "config", "read the licence").get("license_info")
    if licence is not None and (not licence or licence.get("valid_key") is False):
        raise NotLicensed(
            "The controller has no valid subscription, and accepts no changes: add a manifest or log in under Settings > Subscription. "
            "Nothing was written."
        )


def _refused(current: dict[str, object], action: str, called: str) -> str:
    """What the object itself says about the account."""
    summary = current.get("summary_fields")
    capabilities = summary.get("user_capabilities") if isinstance(summary, dict) else None
    needed = {"update": "edit", "delete": "delete"}.get(action, "")
    refused = isinstance(capabilities, dict) and capabilities.get(needed) is False
    return f"{'change' if action == 'update' else action} {called}" if refused else ""


def _may_create(api: PlatformApi, kind: Kind) -> bool:
    try:
        return api.may_create(kind.api, kind.path, f"read the permissions for {kind.title}s")
    except Forbidden:
        return False
