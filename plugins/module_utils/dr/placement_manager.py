# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which cluster of a policy gets a workload first, and why. Pure; a failover or relocation names its cluster itself."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Intent, Member, Observations, Policy


@dataclass(frozen=True)
class Choice:
    """The chosen cluster, empty if none fits, and the reason for people to read."""

    cluster: str
    reason: str


def choose_home(intent: Intent, policy: Policy, observations: Observations) -> Choice:
    """The preferred cluster if it fits, and no other: its data may be there already. Without one, the best of the policy."""
    if intent.preferred:
        return _preferred(intent.preferred, policy, observations)
    refusals = {member.name: _refusal(member, observations) for member in policy.members}
    fitting = [member for member in policy.members if not refusals[member.name]]
    refused = "; ".join(f"{name} {why}" for name, why in refusals.items() if why)
    if not fitting:
        return Choice("", f"No cluster of the policy {policy.name} fits: {refused or 'it has none'}")
    best = min(fitting, key=lambda member: _rank(member, observations))
    reasons = ", ".join(["answers", "is not fenced", *_reasons(best, observations)])
    return Choice(best.name, f"{best.name} {reasons}" + (f"; {refused}" if refused else ""))


def _preferred(name: str, policy: Policy, observations: Observations) -> Choice:
    member = policy.member(name)
    if not member:
        return Choice("", f"preferredCluster {name} is not in the policy {policy.name}, which has {', '.join(policy.clusters)}")
    elsewhere = [other.name for other in policy.members if other.name != name and _has_workload(other, observations)]
    if elsewhere and not _has_workload(member, observations):
        return Choice("", f"preferredCluster is {name}, but the workload and its data are on {' and '.join(elsewhere)}")
    why = _refusal(member, observations)
    return Choice("", f"preferredCluster {name} {why}") if why else Choice(name, f"{name} is the preferred cluster")


def _refusal(member: Member, observations: Observations) -> str:
    if member.deleting:
        return "is being deleted"
    if member.fencing:
        return "is fenced"
    if not observations.answered(member.name):
        return f"does not answer ({getattr(observations.answer(member.name), 'why', '')})"
    return ""


def _rank(member: Member, observations: Observations) -> tuple[bool, bool, str]:
    return not _has_workload(member, observations), not _is_near(member, observations), member.name


def _reasons(member: Member, observations: Observations) -> list[str]:
    near = [f"is in the region {member.region}"] if _is_near(member, observations) else []
    return (["has the workload"] if _has_workload(member, observations) else []) + near


def _has_workload(member: Member, observations: Observations) -> bool:
    workload = observations.workload(member.name)
    return bool(workload and workload.wanted)


def _is_near(member: Member, observations: Observations) -> bool:
    return bool(member.region) and member.region == observations.region
