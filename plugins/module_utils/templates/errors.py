# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The errors of templates and of orders for them, as one family; each message has what is wrong and what to do."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..common.argument_values import clip
from ..common.text import did_you_mean

COLLECTION = "openfleet.clusters"
ID = re.compile(r"[a-zA-Z_][a-zA-Z0-9._]*")  # as the ClusterOrder's CRD has it
SHOWN_PROBLEMS = 20


class TemplateError(Exception):
    """The base of the family. No message has the value of a secret parameter. `retryable`: the same order may be valid later."""

    retryable = False


class UnknownTemplate(TemplateError):
    """No installed collection has a template of that name."""

    def __init__(self, template_id: str, templates: Collection[str]) -> None:
        if ID.fullmatch(template_id):
            full = {name.rpartition(".")[2]: name for name in templates}
            hint = did_you_mean(template_id, [*full, *templates], full)
        else:
            hint = " (the name of a template has letters, digits, dots and underscores)"
        super().__init__(
            f"There is no cluster template {clip(template_id)}{hint}. A name without dots means one of {COLLECTION}, any other template"
            f" is <namespace>.<collection>.<role> of a collection that Ansible finds; {COLLECTION}.cluster_template_info lists them all."
        )
        self.template_id = template_id


class TemplateNotOffered(TemplateError):
    """The site does not offer the template to the orders of this namespace."""

    def __init__(self, template_id: str, namespace: str) -> None:
        super().__init__(
            f"The site does not offer the cluster template {template_id} to orders of the namespace {namespace}: name another."
        )


class BrokenTemplate(TemplateError):
    """The template itself has a mistake, which its author has to correct."""

    def __init__(self, template_id: str, problem: str) -> None:
        super().__init__(f"Cluster template {template_id} cannot be used: {problem}.")
        self.template_id = template_id
        self.problem = problem


class InvalidOrder(TemplateError):
    """The order does not fit its template. `problems` has every mistake, each as a sentence without a full stop."""

    def __init__(self, template_id: str, problems: Sequence[str]) -> None:
        self.template_id = template_id
        self.problems = list(problems)
        text = "; ".join(f"({number}) {problem}" for number, problem in enumerate(self.problems[:SHOWN_PROBLEMS], 1))
        if len(problems) > SHOWN_PROBLEMS:
            text += f"; and {len(problems) - SHOWN_PROBLEMS} more"
        text = f"{len(problems)} mistakes: {text}" if len(problems) > 1 else self.problems[0]
        super().__init__(f"The order does not fit its cluster template {template_id}: {text}.")


class SecretsMissing(TemplateError):
    """The order refers to Secrets that cannot be used. The tenant can create them; the order need not be changed after that."""

    retryable = True

    def __init__(self, missing: Sequence[str]) -> None:
        more = f"; and {len(missing) - SHOWN_PROBLEMS} more" if len(missing) > SHOWN_PROBLEMS else ""
        super().__init__(f"A secret of the order is missing: {'; '.join(missing[:SHOWN_PROBLEMS])}{more}.")
