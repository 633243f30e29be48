"""Which data are copied where: from the only primary to the others at each interval, or from a group that relocates to its peer.

The decisions are pure; a copy is a write of the volume on the other cluster. Two primaries copy nothing, so both keep their own writes.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from .faults import LAG, NO_SYNC
from .member import Member, interval_of
from .volumes import DEMOTED, PRIMARY, SECONDARY, Volume


def conflicts(member: Member, members: Sequence[Member]) -> str:
    """The other clusters on which the group is primary too."""
    if not member.is_source:
        return ""
    return ", ".join(sorted(other.site.name for other in members if other is not member and other.is_source))


def source_of(members: Sequence[Member]) -> Member | None:
    """The only member that others copy from; None where there is none, or more than one."""
    sources = [member for member in members if member.is_source]
    return sources[0] if len(sources) == 1 else None


def targets_of(source: Member, members: Sequence[Member]) -> list[Member]:
    """The members that data of the source are copied to now."""
    if source.is_fenced or NO_SYNC in source.faults:
        return []
    return [member for member in members if member is not source and member.is_target and not member.is_fenced]


def next_copy(source: Member, now: datetime.datetime) -> datetime.timedelta:
    """How long it is until the next copy; zero if it is due. A synchronous group copies every write at once."""
    due = [_due(source, volume, now) for volume in source.volumes.values()]
    return max(min(due, default=interval_of(source)), datetime.timedelta())


def _due(source: Member, volume: Volume, now: datetime.datetime) -> datetime.timedelta:
    if volume.synced is None or "async" not in source.spec:
        return datetime.timedelta()
    return volume.synced + _lag(source) + interval_of(source) - now


def copy_all(source: Member, targets: Sequence[Member], now: datetime.datetime, complete: bool = False) -> None:
    """Copy the volumes of the source. A `complete` copy ignores a lag: it is the last one before the group moves."""
    as_of = now if complete else now - _lag(source)
    for key, volume in sorted(source.volumes.items()):
        for target in targets:
            known = target.volumes.get(key)
            copied = _copied(volume, known, as_of)
            if known is None or (known.role, known.writes) != (SECONDARY, copied) or "async" in source.spec:
                target.write(replace(volume, role=SECONDARY, writes=copied, synced=as_of))
        if "async" in source.spec or volume.synced is None:
            # Without the writes: the application may have appended some since.
            source.mark_synced(replace(volume, synced=as_of))


def _copied(volume: Volume, known: Volume | None, as_of: datetime.datetime) -> tuple[str, ...]:
    """The writes up to a time. A copy that has more of them already keeps those."""
    writes = volume.written_before(as_of)
    is_ahead = known is not None and len(known.writes) > len(writes) and volume.writes[: len(known.writes)] == known.writes
    return known.writes if known and is_ahead else writes


def is_copied(source: Member, targets: Sequence[Member]) -> bool:
    """Whether every target has every write of the source."""
    return bool(targets) and all(
        key in target.volumes and target.volumes[key].writes == volume.writes
        for target in targets
        for key, volume in source.volumes.items()
    )


def relocating(members: Sequence[Member]) -> Member | None:
    """The member that was primary and gives its data to its peer before that becomes primary."""
    candidates = [
        member
        for member in members
        if not member.wants_primary
        and member.spec.get("action") == "Relocate"
        and any(volume.role == DEMOTED for volume in member.volumes.values())
    ]
    return candidates[0] if len(candidates) == 1 and not any(member.is_source for member in members) else None


def demote(member: Member) -> None:
    for volume in list(member.volumes.values()):
        if volume.role == PRIMARY:
            member.write(replace(volume, role=DEMOTED))


def promote(member: Member) -> None:
    """Make the volumes primary. No copy of what is written from now on exists yet."""
    for volume in list(member.volumes.values()):
        if volume.role != PRIMARY:
            member.write(replace(volume, role=PRIMARY, synced=None))


def complete(member: Member) -> None:
    """The peer has all data of a group that was primary."""
    for volume in list(member.volumes.values()):
        member.write(replace(volume, role=SECONDARY))


def _lag(member: Member) -> datetime.timedelta:
    return datetime.timedelta(seconds=member.faults.seconds.get(LAG, 0.0))
