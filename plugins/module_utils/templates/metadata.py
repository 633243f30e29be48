# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a template's role, read, and merged with those of its bases. Problems are texts, never exceptions.

A template may extend another. Beside `extends`, its `meta/template.yml` then has only what it adds or changes: metadata, and parameters
below `parameters`. These are not in its argument spec, because argument specs cannot inherit: Ansible would refuse every
parameter of the base that is not repeated there. An entry point that the template lacks is its base's; one that it has replaces
its base's, and includes that where it wants to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.argument_checker import RULES, Options, Problems
from ..common.argument_spec_reader import grouped, read_options
from ..common.argument_values import clip
from ..common.text import did_you_mean
from ..providers.model import NodeRequest
from .errors import COLLECTION, ID
from .node_requests import check_node_requests
from .profile_rules import KEY as PROFILES
from .profile_rules import ProfileRule, read_rules
from .site_parameters import DEFAULTS, RELEASE_IMAGE, SETTINGS, VERSION, SiteRules

INSTALL, POST_INSTALL, DELETE = "install", "post_install", "delete"
ENTRY_POINTS = (INSTALL, POST_INSTALL, DELETE)
DEFAULT_DELETE = f"{COLLECTION}.default_delete"  # the role that deletes a cluster through its provider
TEXTS = ("title", "description", "provider")
SITE_CHOICES, IF_SITE_HAS = "site_choices", "post_install_if_site_has"
METADATA = (
    *(*TEXTS, "default_node_requests", "allowed_resource_classes", "site_parameters", "site_defaults", "network_parameters"),
    *(SITE_CHOICES, IF_SITE_HAS, PROFILES),
)


@dataclass(frozen=True)
class Files:
    """The content of a template's own files, without its base, and what is wrong with them."""

    template_id: str
    metadata: Mapping[str, Any]
    extends: str | None
    additions: Mapping[str, Any]  # options and rules, as beside `options` of an argument spec
    entry_points: Mapping[str, Mapping[str, Any]]  # the declaration of template_parameters of each
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryPoint:
    """The role that runs, of a template or one of its bases, and its parameters: those in `own`, or all where that is None.

    With `if_site_has` it has something to do only for a site that has one of these settings.
    """

    role: str
    parameters: Options
    own: tuple[str, ...] | None = None
    if_site_has: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """What a template comes to together with its bases."""

    title: str
    description: str
    provider: str
    default_node_requests: tuple[NodeRequest, ...]
    allowed_resource_classes: tuple[str, ...]
    site_rules: SiteRules
    network_parameters: tuple[str, ...]
    entry_points: Mapping[str, EntryPoint]
    lineage: tuple[str, ...]
    profile_rules: Mapping[str, ProfileRule] | None = None


# Reading


def read_files(template_id: str, role: Path) -> Files:
    """Read the files of the template's role."""
    problems: Problems = []
    if not ID.fullmatch(template_id):
        problems.append("the name of its role has characters that no order can name: use letters, digits and underscores")
    metadata = _load(role / "meta", "template.yml", problems)
    extends = metadata.pop("extends", None)
    if extends is not None and not isinstance(extends, str):
        problems.append("meta/template.yml: extends must be the name of a template")
        extends = None
    additions = {rule: metadata.pop(rule) for rule in RULES if extends and rule in metadata}
    additions["options"] = metadata.pop("parameters", None) if extends else None
    allowed = ("extends", *METADATA, "parameters", *RULES) if extends else ("extends", *METADATA)
    problems.extend(
        f"meta/template.yml: {clip(str(key))} is not known{did_you_mean(str(key), allowed)}" for key in metadata if key not in METADATA
    )
    if "parameters" in metadata:
        problems.append("meta/template.yml: parameters is for templates that extend another, all others have it in meta/argument_specs.yml")
    if not problems:
        problems.extend(_text_mistakes(metadata, extends is not None))
    entry_points = _read_entry_points(role, extends is not None, problems)
    return Files(template_id, metadata, extends, additions, entry_points, tuple(problems))


def _text_mistakes(metadata: Mapping[str, Any], derived: bool) -> Iterator[str]:
    for key in TEXTS:
        value = metadata.get(key)
        if value is None:
            if not derived:
                yield f"meta/template.yml: {key} is missing"
        elif not isinstance(value, str) or not value.strip():
            yield f"meta/template.yml: {key} must be a string"


def _read_entry_points(role: Path, derived: bool, problems: Problems) -> dict[str, dict[str, Any]]:
    """Those in the argument spec and those with tasks. A template that extends another needs no argument spec."""
    folder = role / "meta"
    specs: dict[str, Any] = {}
    if not derived or (folder / "argument_specs.yml").exists():
        specs = _mapping(_load(folder, "argument_specs.yml", problems).get("argument_specs"))
    result = {
        entry: _mapping(_mapping(_mapping(specs.get(entry)).get("options")).get("template_parameters"))
        for entry in ENTRY_POINTS
        if entry in specs or (role / "tasks" / f"{entry}.yml").is_file()
    }
    if INSTALL not in result and not derived and not problems:
        problems.append("meta/argument_specs.yml has no entry point install")
    return result


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _load(folder: Path, name: str, problems: Problems) -> dict[str, Any]:
    import yaml  # here, as ansible-test imports this file where there is nothing but Python

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is ten times faster, and not in every PyYAML
    try:
        loaded = yaml.load((folder / name).read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 both are safe
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problems.append(f"meta/{name} is not YAML: {error.problem or error.context}{where}")
        return {}
    except (yaml.YAMLError, UnicodeDecodeError):
        problems.append(f"meta/{name} is not YAML: it has characters that are not text")
        return {}
    except OSError as error:
        problems.append(f"meta/{name} cannot be read: {error.strerror}")
        return {}
    if not isinstance(loaded, dict):
        problems.append(f"meta/{name} must be a mapping")
        return {}
    return loaded


# Merging


def merge(chain: Sequence[Files], problems: Problems) -> Contents:
    """A template and its bases as one. The chain starts with the template itself."""
    metadata = {key: value for files in reversed(chain) for key, value in files.metadata.items() if value is not None}
    classes = metadata.get("allowed_resource_classes", [])
    if not isinstance(classes, list) or not all(isinstance(name, str) and name for name in classes):
        problems.append("meta/template.yml: allowed_resource_classes must be a list of names")
        classes = []
    mistakes: Problems = []
    defaults = check_node_requests(metadata.get("default_node_requests", []), classes, "default_node_requests", mistakes)
    problems.extend(f"meta/template.yml: {mistake}" for mistake in mistakes)
    found = {entry: point for entry in ENTRY_POINTS if (point := _entry_point(chain, entry, problems))}
    declared = found[INSTALL].parameters.members if INSTALL in found else {}
    return Contents(
        title=metadata["title"].strip(),
        description=metadata["description"].strip(),
        provider=metadata["provider"].strip(),
        default_node_requests=tuple(defaults),
        allowed_resource_classes=tuple(classes),
        site_rules=SiteRules(
            _parameter_names("site_parameters", metadata, declared, problems),
            _site_defaults(metadata, declared, problems),
            _site_choices(metadata, declared, problems),
        ),
        network_parameters=_parameter_names("network_parameters", metadata, declared, problems),
        entry_points=found,
        lineage=tuple(files.template_id for files in reversed(chain)),
        profile_rules=read_rules(metadata, problems),
    )


def _parameter_names(key: str, metadata: Mapping[str, Any], declared: Collection[str], problems: Problems) -> tuple[str, ...]:
    names = metadata.get(key, [])
    if not isinstance(names, list) or (unknown := [str(name) for name in names if name not in declared]):
        which = f"; invalid: {', '.join(unknown)}" if isinstance(names, list) else ""
        problems.append(f"meta/template.yml: {key} must be a list of parameters of install{which}")
        return ()
    return tuple(names)


def _site_defaults(metadata: Mapping[str, Any], declared: Collection[str], problems: Problems) -> tuple[str, ...]:
    names = _parameter_names("site_defaults", metadata, declared, problems)
    if unknown := [name for name in names if name not in DEFAULTS]:
        problems.append(f"meta/template.yml: a site has no default for {', '.join(unknown)}: site_defaults can be {', '.join(DEFAULTS)}")
    if RELEASE_IMAGE in names and VERSION not in declared:
        problems.append(f"meta/template.yml: {RELEASE_IMAGE} in site_defaults needs a parameter {VERSION}, by which the site has images")
    return names


def _site_choices(metadata: Mapping[str, Any], declared: Collection[str], problems: Problems) -> dict[str, str]:
    choices = metadata.get(SITE_CHOICES, {})
    if not isinstance(choices, dict) or not all(name in declared and _is_setting(path) for name, path in choices.items()):
        problems.append(
            f"meta/template.yml: {SITE_CHOICES} must be a mapping of parameters of install to settings of the site: {_settings_known()}"
        )
        return {}
    return choices


def _if_site_has(files: Files, entry: str, problems: Problems) -> tuple[str, ...]:
    """The condition is that of the tasks: a template with tasks of its own has its own, or none."""
    paths = files.metadata.get(IF_SITE_HAS) if entry == POST_INSTALL else None
    if paths is None:
        return ()
    if not isinstance(paths, list) or not all(map(_is_setting, paths)):
        problems.append(f"meta/template.yml: {IF_SITE_HAS} must be a list of settings of the site: {_settings_known()}")
        return ()
    return tuple(paths)


def _is_setting(path: Any) -> bool:
    return isinstance(path, str) and path.split(".")[0] in SETTINGS


def _settings_known() -> str:
    return f"{', '.join(SETTINGS)}, or a part such as infrastructure.dns"


def _entry_point(chain: Sequence[Files], entry: str, problems: Problems) -> EntryPoint | None:
    runs = next((files for files in chain if entry in files.entry_points), None)
    if runs is None and entry != DELETE:
        return None
    root = chain[-1].entry_points
    declared = root.get(entry, {})
    if declared.get("options") is None:
        declared = root[INSTALL]  # an entry point that declares none of its own has those of install
    for files in reversed(chain[:-1]):
        declared = _add(declared, files.additions)
    mistakes: Problems = []
    parameters = read_options(declared, mistakes)
    problems.extend(mistake for mistake in mistakes if mistake not in problems)
    if runs is None:
        return EntryPoint(DEFAULT_DELETE, parameters)
    own = runs.entry_points[entry].get("options")
    if own is not None and runs is not chain[-1] and (missing := [name for name in parameters.members if name not in own]):
        problems.append(
            f"{runs.template_id}: its argument spec of {entry} lists parameters without {', '.join(missing)}, which Ansible would refuse:"
            " declare what the template adds below parameters in meta/template.yml instead"
        )
    return EntryPoint(runs.template_id, parameters, None if own is None else tuple(own), _if_site_has(runs, entry, problems))


def _add(declared: Mapping[str, Any], additions: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration with what a template adds. Of an inherited parameter it may change single keys, such as the default."""
    options, added = declared.get("options") or {}, additions.get("options") or {}
    if not isinstance(options, dict) or not isinstance(added, dict):
        return {"options": "not a mapping"}
    merged = {name: _mapping(options.get(name)) | words if isinstance(words, dict) else words for name, words in added.items()}
    rules = {rule: _join(declared.get(rule), additions.get(rule)) for rule in RULES}
    return {"options": options | merged} | rules


def _join(rule: Any, added: Any) -> Any:
    if not rule or not added:
        return rule or added
    if isinstance(rule, dict) and isinstance(added, dict):
        return rule | added
    if isinstance(rule, list) and isinstance(added, list):
        return [*grouped(rule), *grouped(added)]
    return "neither two lists nor two mappings"
