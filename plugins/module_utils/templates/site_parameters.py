# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The site's share in the parameters of an order: those that belong to the site, and those that the site has a default for.

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


@dataclass(frozen=True)
class SiteParameter:
    """The site's value for orders without one, and the values that orders may have instead."""

    default: Any = None
    allowed: tuple[Any, ...] = ()


@dataclass(frozen=True)
class SiteValues:
    """What a site has for the parameters of templates. `secrets` has the defaults of the parameters with these names."""

    parameters: Mapping[str, SiteParameter] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    release_images: Mapping[str, str] = field(default_factory=dict)
    allow_inline_secrets: bool = True


@dataclass(frozen=True)
class SiteRules:
    """The parameters of one template that belong to the site, and those that the site has a default for."""

    site_parameters: tuple[str, ...] = ()
    site_defaults: tuple[str, ...] = ()

    def apply(self, options: Options, given: Mapping[str, Any], site: SiteValues, problems: Problems) -> dict[str, Any]:
        """The parameters of an order with the site's defaults. What the site does not allow, or lacks, is added to `problems`.

        `options` are those of install. The choices of an author open a parameter: the order may then have any of them.
        """
        values = dict(given)
        for name in self.site_parameters:
            self._refuse(name, options, values, site.parameters.get(name, SiteParameter()), problems)
        if RELEASE_IMAGE in self.site_defaults:
            _choose_release(options, values, site, problems)
        for name in self.site_defaults:
            if name in site.secrets and not _used(name, options, values):
                values[name] = site.secrets[name]
        for name in self.site_parameters:
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


def _used(name: str, options: Options, values: Mapping[str, Any]) -> list[str]:
    """The names by which the order has a value for the parameter."""
    option = options.members.get(name)
    return [key for key in (name, *(option.aliases if option else ())) if values.get(key) is not None]


def _refusal(name: str, parameter: SiteParameter) -> str:
    if not parameter.allowed:
        return f"parameter {name} belongs to the site: leave it out"
    return f"parameter {name} belongs to the site, which allows {', '.join(map(show, parameter.allowed))}"
