# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the installed collection says about itself: its playbooks with their variables, and what its rulebooks launch.

The facts are read from the files that run, so no table can differ from them. Nothing here knows Automation Platform.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.third_party import yaml

# A variable that a playbook or rulebook does not set itself: the file says what happens without it.
TAKEN = re.compile(r"(?<![.\w])(\w+) \| default\(")
SET_BY_ROLES = {"cluster_infrastructure"}  # a fact, which no user sets
NAME = re.compile(r"\{\{ (\w+) \| default\('([\w-]+)'\) \}\}")
IMPORT = "ansible.builtin.import_playbook"
JOB, WORKFLOW = "run_job_template", "run_workflow_template"


@dataclass(frozen=True)
class Playbook:
    """A playbook of the collection; `description` is its first line, `variables` are those that a user can set."""

    name: str
    description: str
    variables: frozenset[str]


@dataclass(frozen=True)
class Launch:
    """A template that a rule launches, of the kind JOB or WORKFLOW: the name of the template is in `variable`, or `default`."""

    kind: str
    variable: str
    default: str
    extra_vars: frozenset[str]
    limit: str
    labels: bool


@dataclass(frozen=True)
class Rulebook:
    """A rulebook of the collection: the variables of its sources and rules, the names of its sources, what its rules launch."""

    name: str
    variables: frozenset[str]
    sources: tuple[str, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class CollectionFacts:
    """The playbooks and rulebooks by name, and the ids of the cluster templates that can be ordered."""

    playbooks: Mapping[str, Playbook]
    rulebooks: Mapping[str, Rulebook]
    templates: tuple[str, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """What the rules of all rulebooks launch."""
        return tuple(launch for rulebook in self.rulebooks.values() for launch in rulebook.launches)


def read_facts(root: Path, templates: Iterable[str]) -> CollectionFacts:
    """The facts of the collection in this folder; `templates` are the ids of the cluster templates on offer."""
    playbooks = (_playbook(file) for file in sorted((root / "playbooks").glob("*.yml")))
    rulebooks = (_rulebook(file) for file in sorted((root / "rulebooks").glob("*.yml")))
    return CollectionFacts(
        {playbook.name: playbook for playbook in playbooks},
        {rulebook.name: rulebook for rulebook in rulebooks},
        tuple(sorted(templates)),
    )


def _playbook(file: Path) -> Playbook:
    text = file.read_text(encoding="utf-8")
    comments = (line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
    return Playbook(file.stem, next(comments, file.stem), _taken(_with_imports(file)))


def _with_imports(file: Path) -> str:
    """The text of a playbook and of the playbooks that it imports from its own folder."""
    text = file.read_text(encoding="utf-8")
    imported = (play[IMPORT] for play in yaml.safe_load(text) if IMPORT in play)
    return "\n".join([text, *(_with_imports(file.parent / name) for name in imported)])


def _taken(text: str) -> frozenset[str]:
    return frozenset(TAKEN.findall(text)) - SET_BY_ROLES


def _rulebook(file: Path) -> Rulebook:
    text = file.read_text(encoding="utf-8")
    rulesets = yaml.safe_load(text)
    sources = tuple(source["name"] for ruleset in rulesets for source in ruleset["sources"])
    launches = tuple(launch for ruleset in rulesets for launch in _launches(ruleset))
    return Rulebook(file.stem, frozenset(TAKEN.findall(text)), sources, launches)


def _launches(ruleset: Mapping[str, Any]) -> Iterator[Launch]:
    for rule in ruleset["rules"]:
        for kind in (JOB, WORKFLOW):
            action = rule["action"].get(kind)
            if action is None:
                continue
            found = NAME.fullmatch(action["name"])
            if found is None:
                raise ValueError(f"{rule['name']}: the name of a template is a variable with a default, not {action['name']}")
            yield Launch(
                kind,
                variable=found[1],
                default=found[2],
                extra_vars=frozenset(action.get("job_args", {}).get("extra_vars", {})),
                limit=ruleset["hosts"],
                labels=bool(action.get("add_event_uuid_label")),
            )
