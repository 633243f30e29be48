# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cluster templates in installed collections: find them, and resolve the one that an order names.

A template is a role with a `meta/template.yml`. Nothing here runs a role, connects to a cluster or reads Ansible's settings: the
caller names the folders that collections are in.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..common.argument_checker import Options
from ..common.argument_values import clip
from ..common.text import did_you_mean
from ..providers.model import NodeRequest
from .errors import COLLECTION, BrokenTemplate, UnknownTemplate
from .metadata import INSTALL, POST_INSTALL, Contents, EntryPoint, Files, merge, read_files
from .profile_rules import ProfileRule
from .site_parameters import SiteRules, setting_at


@dataclass(frozen=True)
class Template:
    """One template. Its files are read on first use; every attribute but id, path and problem may raise BrokenTemplate."""

    id: str
    path: Path
    catalogue: Mapping[str, Template] = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        return self._contents.title

    @property
    def description(self) -> str:
        return self._contents.description

    @property
    def provider(self) -> str:
        return self._contents.provider

    @property
    def default_node_requests(self) -> tuple[NodeRequest, ...]:
        return self._contents.default_node_requests

    @property
    def allowed_resource_classes(self) -> tuple[str, ...]:
        """Empty where any class is allowed."""
        return self._contents.allowed_resource_classes

    @property
    def site_rules(self) -> SiteRules:
        """What of its parameters belongs to the site, and what the site has a default for."""
        return self._contents.site_rules

    @property
    def network_parameters(self) -> tuple[str, ...]:
        """The parameters whose values are address ranges of the cluster."""
        return self._contents.network_parameters

    @property
    def profile_rules(self) -> Mapping[str, ProfileRule] | None:
        """The profiles that it requires and allows; None where an order may have all that the site offers."""
        return self._contents.profile_rules

    @property
    def entry_points(self) -> tuple[str, ...]:
        return tuple(self._contents.entry_points)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The ids of this template and of what it extends, the last base first."""
        return self._contents.lineage

    def entry_point(self, entry: str) -> EntryPoint | None:
        return self._contents.entry_points.get(entry)

    def parameters(self, entry: str = INSTALL) -> Options:
        point = self.entry_point(entry)
        return point.parameters if point else Options()

    def needs_post_install(self, settings: Mapping[str, Any]) -> bool:
        """Whether it has something to do after the installation, with these settings of the site."""
        point = self.entry_point(POST_INSTALL)
        return point is not None and (not point.if_site_has or any(setting_at(settings, path) for path in point.if_site_has))

    @property
    def problem(self) -> str | None:
        """What is wrong with the template itself, if anything."""
        return self._outcome if isinstance(self._outcome, str) else None

    @property
    def _contents(self) -> Contents:
        if isinstance(self._outcome, str):
            raise BrokenTemplate(self.id, self._outcome)
        return self._outcome

    @cached_property
    def files(self) -> Files:
        return read_files(self.id, self.path)

    @cached_property
    def _chain(self) -> tuple[list[Template], str | None]:
        """This template, what it extends, what that extends and so on; and why the chain has no end, if it has none."""
        chain, names = [self], [self.id]
        while (base_id := chain[-1].files.extends) is not None:
            try:
                base = resolve(base_id, self.catalogue)
            except UnknownTemplate:
                return chain, f"{chain[-1].id} extends {clip(base_id)}, which is not installed{did_you_mean(base_id, self.catalogue)}"
            names.append(base.id)
            if base in chain:
                return chain, f"it extends itself: {' -> '.join(names)}"
            chain.append(base)
        return chain, None

    @cached_property
    def _outcome(self) -> Contents | str:
        chain, problem = self._chain
        problems = [text if template is self else f"{template.id}: {text}" for template in chain for text in template.files.problems]
        if problem:
            problems.append(problem)
        contents = None if problems else merge([template.files for template in chain], problems)
        return contents if contents and not problems else "; ".join(problems)


def find_templates(collection_roots: Iterable[Path | str]) -> dict[str, Template]:
    """Every template of every collection below these folders, by its full id.

    The folders are those of Ansible's collections path, with or without `ansible_collections` at their end. As for Ansible, a
    collection that is in two of them is the one in the first, as a whole. No file is read here.
    """
    found: dict[str, Template] = {}
    seen: set[str] = set()
    for root in map(Path, collection_roots):
        for collection, folder in _collections(root if root.name == "ansible_collections" else root / "ansible_collections"):
            if collection not in seen:
                seen.add(collection)
                for role in _folders(folder / "roles"):
                    if _is_template(role):
                        name = f"{collection}.{role.name}"
                        found[name] = Template(name, role, found)
    return found


def _collections(root: Path) -> Iterator[tuple[str, Path]]:
    for namespace in _folders(root):
        # Beside collections there are folders such as amazon.aws-10.1.2.info, which ansible-galaxy writes.
        if namespace.name.isidentifier():
            for collection in _folders(namespace):
                if collection.name.isidentifier():
                    yield f"{namespace.name}.{collection.name}", collection


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return sorted(path / entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []


def _is_template(role: Path) -> bool:
    try:
        return (role / "meta" / "template.yml").is_file()
    except OSError:
        return False


def resolve(template_id: str, templates: Mapping[str, Template]) -> Template:
    """The template that an order's `templateID` names. It may be a broken one, which raises BrokenTemplate on use."""
    full = template_id if "." in template_id else f"{COLLECTION}.{template_id}"
    if full not in templates:
        raise UnknownTemplate(template_id, templates)
    return templates[full]
