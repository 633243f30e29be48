# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Parameters that belong to the site: they reach outside the tenant's own objects, so an order sets only what the site allows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..common.argument_checker import Options, Problems
from ..common.argument_values import show


@dataclass(frozen=True)
class SiteParameter:
    """The site's value for orders without one, and the values that orders may have instead."""

    default: Any = None
    allowed: tuple[Any, ...] = ()


def with_site_values(
    names: Collection[str], options: Options, given: Mapping[str, Any], site: Mapping[str, SiteParameter], problems: Problems
) -> dict[str, Any]:
    """The parameters of an order with the site's defaults. What the site does not allow is added to `problems`.

    The choices of an author open a parameter: the order may then have any of them.
    """
    values = dict(given)
    for name in names:
        parameter, option = site.get(name, SiteParameter()), options.members[name]
        used = [key for key in (name, *option.aliases) if values.get(key) is not None]
        if not used and parameter.default is not None:
            values[name] = parameter.default
        if option.choices:
            continue
        for key in used:
            if values[key] not in (*parameter.allowed, parameter.default, option.default):
                problems.append(_refusal(key, parameter))
                del values[key]
    return values


def _refusal(name: str, parameter: SiteParameter) -> str:
    if not parameter.allowed:
        return f"parameter {name} belongs to the site: leave it out"
    return f"parameter {name} belongs to the site, which allows {', '.join(map(show, parameter.allowed))}"
