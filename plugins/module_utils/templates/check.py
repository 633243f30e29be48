# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An order checked against its template: parameters, nodes, and the role to run for an entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_checker import ArgumentChecker, Problems
from ..common.ip_networks import network_problems
from ..providers.model import NodeRequest
from .catalogue import Template
from .errors import InvalidOrder, SecretsMissing
from .metadata import DELETE, INSTALL
from .node_requests import check_node_requests
from .parameters import parse
from .secret_references import FORM, ReadSecret, SecretParameters, no_secrets
from .site_parameters import SiteValues

CHECKER = ArgumentChecker("template")


@dataclass(frozen=True)
class Checked:
    """An order as its template runs it: the role for the entry point, its parameters and nodes.

    Parameters are typed and have their defaults. `role` is None if the template has no such entry point. `inlined` names the secret
    parameters whose values the order itself has. `ignored` has mistakes that were ignored, which happens on delete only.
    `all_parameters` has those too that the role does not declare.
    """

    parameters: dict[str, Any] = field(repr=False)
    node_requests: tuple[NodeRequest, ...]
    role: str | None = None
    ignored: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    all_parameters: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def check(
    template: Template,
    raw_parameters: str | None,
    node_requests: Sequence[NodeRequest | Mapping[str, Any]] | None = None,
    entry: str = INSTALL,
    site: SiteValues | None = None,
    read_secret: ReadSecret = no_secrets,
) -> Checked:
    """The order as this template runs it, or InvalidOrder with all its mistakes; SecretsMissing if it has none, but lacks Secrets.

    `raw_parameters` and `node_requests` are the order's `templateParameters` and `nodeRequests`, the latter as read or as data. What a
    role declares for install only is left out for the other entry points. `site` has the site's values for parameters, and `read_secret`
    reads the Secrets that the order refers to.

    Delete never fails here: a mistake in an order must not keep its cluster alive. Its mistakes are in `ignored`.
    """
    problems: Problems = []
    site = site or SiteValues()
    given = parse(raw_parameters, problems)
    secrets = SecretParameters(read_secret, problems)
    if not problems or entry == DELETE:
        declared, known = template.parameters(entry), template.parameters(INSTALL)
        given = secrets.resolve(declared, given)
        if not site.allow_inline_secrets:
            problems.extend(f"parameter {name} must be {FORM}: this site allows no secrets in an order" for name in secrets.inlined)
        given = template.site_rules.apply(known, given, site, problems)
        given |= template.site_rules.missing(declared, given, problems)
        parameters = CHECKER.check(declared, given, problems, known=known.members)
        problems.extend(network_problems(_networks(template, parameters)))
    else:
        parameters = {}
    nodes = check_node_requests(node_requests or [], template.allowed_resource_classes, "nodeRequests", problems)
    if problems and entry != DELETE:
        raise InvalidOrder(template.id, [*problems, *secrets.missing])
    if secrets.missing and entry != DELETE:
        raise SecretsMissing(secrets.missing)
    point = template.entry_point(entry)
    own = parameters if point is None or point.own is None else point.own
    return Checked(
        parameters={name: value for name, value in parameters.items() if name in own},
        node_requests=tuple(nodes) if node_requests else template.default_node_requests,
        role=point.role if point else None,
        ignored=(*problems, *secrets.missing),
        inlined=tuple(secrets.inlined),
        all_parameters=parameters,
    )


def _networks(template: Template, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
    """The address ranges among the parameters. What has another type than its declaration is a problem already."""
    given = {f"parameter {name}": parameters.get(name) for name in template.network_parameters}
    ranges = {name: value if isinstance(value, list) else [value] for name, value in given.items() if value is not None}
    return {name: [text for text in texts if isinstance(text, str)] for name, texts in ranges.items()}
