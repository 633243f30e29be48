# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The errors of Automation Platform as code that are not answers of a server; each message has what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from ..kube.errors import KubeError


class PlatformError(KubeError):
    """The base of these errors."""


class InvalidDocument(PlatformError):
    """The platform cannot be configured from the document. `problems` has one message for each reason; nothing was written."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        listed = "\n".join(f"- {problem}" for problem in self.problems)
        super().__init__(f"The document has {count}; nothing was written.\n{listed}")


class NotLicensed(PlatformError):
    """The controller has no valid subscription."""


class NotPermitted(PlatformError):
    """The account lacks a permission that the plan needs. Nothing was written."""


class OtherRun(PlatformError):
    """Another run changes the ledger at the same time."""

    retryable = True


class DeadlineExceeded(PlatformError):
    """The run has used up its time."""

    retryable = True


class NotApplied(PlatformError):
    """A part of the plan was applied, then a request failed."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable
