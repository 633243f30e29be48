# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The site's share in the parameters of an order: those that belong to the site, those that name what the site has, and its defaults.

A parameter that belongs to the site reaches outside the tenant's own objects, so an order sets only what the site allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_checker import UNKNOWN, Options, Problems
from ..common.argument_values import show

RELEASE_IMAGE, VERSION = "release_image", "version"  # the site has the image of each version
DEFAULTS = ("pull_secret", "ssh_public_key", RELEASE_IMAGE)
SETTINGS = ("agent_namespace", "classes", "release_images", "storage_classes", "infrastructure")  # those that templates get


@dataclass(frozen=True)
class SiteParameter:
    """The site's value for orders without one, and the values that orders may have instead."""

    default: Any = None
    allowed: tuple[Any, ...] = ()


@dataclass(frozen=True)
class SiteValues:
    """What a site has for the parameters of templates. `secrets` has the defaults of the parameters with these names.

    `settings` are those of the site that templates get as `cluster_site`.
    """

    parameters: Mapping[str, SiteParameter] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    release_images: Mapping[str, str] = field(default_factory=dict)
    allow_inline_secrets: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SiteRules:
    """The parameters of one template that belong to the site, and those that the site has a default for.

    `site_choices` has the setting of the site by the parameters whose values are names in it.
    """

    site_parameters: tuple[str, ...] = ()
    site_defaults: tuple[str, ...] = ()
    site_choices: Mapping[str, str] = field(default_factory=dict)

    def apply(self, options: Options, given: Mapping[str, Any], site: SiteValues, problems: Problems) -> dict[str, Any]:
        """The parameters of an order with the site's defaults. What the site does not allow, or lacks, is added to `problems`.

        `options` are those of install. The choices of an author open a parameter: the order may then have any of them.
        """
        values = dict(given)
        for name in self.site_parameters:
            self._refuse(name, options, values, site.parameters.get(name, SiteParameter()), problems)
        for name, path in self.site_choices.items():
            _refuse_unknown(name, options, values, names_at(site.settings, path), problems)
            _refuse_unserved(name, options, values, setting_at(site.settings, path), path, problems)
        if RELEASE_IMAGE in self.site_defaults:
            _choose_release(options, values, site, problems)
        for name in self.site_defaults:
            if name in site.secrets and not _used(name, options, values):
                values[name] = site.secrets[name]
        for name in (*self.site_parameters, *self.site_choices):
            default = site.parameters.get(name, SiteParameter()).default
            if default is not None and not _used(name, options, values):
                values[name] = default
        return values

    def missing(self, options: Options, values: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
        """Values for the required parameters that neither the order nor the site has: unknown ones, after a message for each."""
        required = (option for name, option in options.members.items() if name in self.site_defaults and option.required)
        names = [option.name for option in required if option.default is None and not _used(option.name, options, values)]
        problems.extend(f"parameter {name} is required, because this site has no default for it" for name in names)
        return dict.fromkeys(names, UNKNOWN)

    def _refuse(self, name: str, options: Options, values: dict[str, Any], parameter: SiteParameter, problems: Problems) -> None:
        option = options.members[name]
        for key in () if option.choices else _used(name, options, values):
            if values[key] not in (*parameter.allowed, parameter.default, option.default):
                problems.append(_refusal(key, parameter))
                del values[key]


def _choose_release(options: Options, values: dict[str, Any], site: SiteValues, problems: Problems) -> None:
    """Set the image of the version, which is the order's or the template's default."""
    chosen, images = _used(VERSION, options, values), _used(RELEASE_IMAGE, options, values)
    if images and chosen:
        problems.append(f"parameters {RELEASE_IMAGE}, {VERSION} exclude each other: give only one")
    if images:
        return
    version = values[chosen[0]] if chosen else options.members[VERSION].default
    if isinstance(version, str) and version in site.release_images:
        values[RELEASE_IMAGE] = site.release_images[version]
    elif chosen:
        versions = ", ".join(site.release_images) or "no versions"
        problems.append(f"parameter {VERSION} is {show(version)}, for which this site has no release image; it has {versions}")
        values[RELEASE_IMAGE] = UNKNOWN


def setting_at(settings: Mapping[str, Any], path: str) -> Any:
    """The setting at a path such as `infrastructure.dns`; None where the site does not have it."""
    value: Any = settings
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def names_at(settings: Mapping[str, Any], path: str) -> list[str]:
    """The names in a setting: the keys of a mapping, the items of a list, or of each item its name."""
    value = setting_at(settings, path)
    items = value if isinstance(value, Mapping | list) else []
    return [str(item.get("name") if isinstance(item, Mapping) else item) for item in items]


def _refuse_unknown(name: str, options: Options, values: dict[str, Any], offered: list[str], problems: Problems) -> None:
    """What is no text is a problem of its type already."""
    for key in _used(name, options, values):
        items = values[key] if isinstance(values[key], list) else [values[key]]
        if wrong := [item for item in items if isinstance(item, str) and item not in offered]:
            problems.append(f"parameter {key} has {', '.join(map(show, wrong[:3]))}, and this site has {', '.join(offered) or 'none'}")
            values[key] = UNKNOWN


def _refuse_unserved(name: str, options: Options, values: dict[str, Any], setting: Any, path: str, problems: Problems) -> None:
    """A parameter that is a mapping names nothing of the site, but needs it to have the setting."""
    for key in _used(name, options, values):
        if isinstance(values[key], Mapping) and setting is None:
            problems.append(f"parameter {key} is for sites that have {path}, and this one has not: leave it out")
            values[key] = UNKNOWN


def _used(name: str, options: Options, values: Mapping[str, Any]) -> list[str]:
    """The names by which the order has a value for the parameter."""
    option = options.members.get(name)
    return [key for key in (name, *(option.aliases if option else ())) if values.get(key) is not None]


def _refusal(name: str, parameter: SiteParameter) -> str:
    if not parameter.allowed:
        return f"parameter {name} belongs to the site: leave it out"
    return f"parameter {name} belongs to the site, which allows {', '.join(map(show, parameter.allowed))}"
