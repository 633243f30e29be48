# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Find a provider by its type, and check a request against its settings. The only file that knows which providers there are."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..common.argument_checker import ArgumentChecker
from ..common.argument_spec_reader import read_options
from ..common.ip_networks import network_problems
from ..common.text import did_you_mean
from ..kube.errors import Invalid
from .base import BrokenProvider, ClusterRef, Provider, ProviderError
from .model import ClusterRequest

BUILT_IN = ("capi", "hypershift", "ocm", "standalone")
DEFAULT = "hypershift"
CHECKER = ArgumentChecker("provider")
DOTTED = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*){2}")


class UnknownProvider(ProviderError):
    """There is no provider of that type."""


class ProviderFactory:
    """Providers by type: a built-in one by its short name, another collection's as <namespace>.<collection>.<provider>."""

    @classmethod
    def get(cls, kind: str) -> type[Provider]:
        """The provider's class, which is called ClusterProvider in `plugins/module_utils/providers/<provider>.py` of its collection."""
        if kind in BUILT_IN:
            module = importlib.import_module(f".{kind}", __package__)
        elif DOTTED.fullmatch(kind):
            namespace, collection, name = kind.split(".")
            try:
                module = importlib.import_module(f"ansible_collections.{namespace}.{collection}.plugins.module_utils.providers.{name}")
            except ImportError as error:
                raise UnknownProvider(
                    f"The provider {kind} cannot be loaded ({error}); install its collection where Ansible runs."
                ) from error
            except Exception as fault:
                raise BrokenProvider(kind, "its file", fault) from fault
        else:
            raise UnknownProvider(
                f"There is no provider {kind[:100]!r}{did_you_mean(kind[:100], BUILT_IN)}; built in are {', '.join(BUILT_IN)}. "
                "A provider of another collection is named <namespace>.<collection>.<provider>."
            )
        provider = getattr(module, "ClusterProvider", None)
        if not (isinstance(provider, type) and issubclass(provider, Provider)):
            raise UnknownProvider(f"{kind} is not a provider: its file has no class ClusterProvider that is a Provider.")
        return provider

    @classmethod
    def for_cluster(cls, kind: str, ref: ClusterRef) -> Provider:
        """The provider of that type for the cluster of that reference."""
        return cls.get(kind)(ref)


def checked(provider: type[Provider], request: ClusterRequest) -> ClusterRequest:
    """The request with the defaults of the provider's settings; Invalid with all mistakes where it doesn't fit them."""
    problems: list[str] = []
    settings = _checked(provider.SETTINGS, request.settings, "settings", problems)
    secrets = _checked(provider.SECRETS, request.secrets, "secrets", problems)
    ranges = {f"settings.{name}": [value] for name in provider.NETWORKS if isinstance(value := settings.get(name), str)}
    problems += network_problems(ranges)
    if problems:
        raise Invalid(f"The provider {provider.TYPE} cannot create such a cluster: {'; '.join(problems)}.", [])
    return replace(request, settings=settings, secrets=secrets)


def _checked(declared: Mapping[str, Any], values: Mapping[str, Any], where: str, problems: list[str]) -> dict[str, Any]:
    options = read_options({"options": declared}, problems, where)
    return CHECKER.check(options, values, problems, where)
