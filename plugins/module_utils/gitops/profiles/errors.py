# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the profiles of an order, or with the repositories that they come from. They are errors of templates."""

from __future__ import annotations

from collections.abc import Sequence

from ...templates.errors import SHOWN_PROBLEMS, TemplateError


class InvalidProfiles(TemplateError):
    """The tenant has to change the order, or the site its offer."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        super().__init__(f"The profiles of the order cannot be installed: {'; '.join(self.problems[:SHOWN_PROBLEMS])}{more}.")


class RepositoryFailed(TemplateError):
    """A repository does not answer, or not as one. The same order may be resolved later."""

    retryable = True

    def __init__(self, repository: str, problem: str) -> None:
        super().__init__(f"The chart repository {repository} cannot be used: {problem}.")
