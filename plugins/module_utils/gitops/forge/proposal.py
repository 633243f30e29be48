# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A change of one file proposed as a pull request. The same proposal again finds the open one.

The name of the branch has a hash of the file before and after. So a proposal that was interrupted anywhere continues, one that was merged
or is of no effect opens nothing, and another change of the same file is another pull request.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from .base import Forge, ForgeUnavailable, PullRequest

BRANCH_PREFIX = "openfleet"


@dataclass(frozen=True)
class Proposal:
    """A file as it is to be; without `content` it is to be deleted. `subject` names the order, in the branch too."""

    path: str
    content: str | None
    subject: str
    title: str
    body: str
    base: str = "main"

    def branch(self, before: str | None) -> str:
        digest = hashlib.sha256(f"{before}\0{self.content}\0{self.base}".encode()).hexdigest()[:12]
        return f"{BRANCH_PREFIX}/{re.sub(r'[^a-z0-9/.-]', '-', self.subject)}-{digest}"


@dataclass(frozen=True)
class Proposed:
    """What a proposal came to. Without a pull request there is nothing to change, or it is a prediction."""

    changed: bool
    before: str | None
    branch: str = ""
    pull_request: PullRequest | None = None


def propose(forge: Forge, proposal: Proposal, *, check_mode: bool = False) -> Proposed:
    """Open a pull request for the proposal, unless the file is so already or there is one."""
    present = forge.file(proposal.path, proposal.base)
    before = present.content if present else None
    if before == proposal.content:
        return Proposed(False, before)
    branch = proposal.branch(before)
    if opened := forge.find_pull_request(branch, proposal.base):
        return Proposed(False, before, branch, opened)
    if check_mode:
        return Proposed(True, before, branch)
    forge.create_branch(branch, proposal.base)
    there = forge.file(proposal.path, branch)
    if (there.content if there else None) != proposal.content:
        forge.write(proposal.path, proposal.content, there, branch, proposal.title)
    opened = forge.open_pull_request(branch, proposal.base, proposal.title, proposal.body)
    if opened is None:
        # Another run has opened it since the search.
        opened = forge.find_pull_request(branch, proposal.base)
        if opened is None:
            raise ForgeUnavailable(f"The forge opens no pull request for the branch {branch}: check it there, and run the task again.")
        return Proposed(False, before, branch, opened)
    return Proposed(True, before, branch, opened)
