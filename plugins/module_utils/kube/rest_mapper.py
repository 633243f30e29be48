# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From a kind to the path of its objects: registered kinds without a request, others by the server's discovery, each group once."""

from __future__ import annotations

from urllib.parse import quote

from .errors import Invalid, NotFound
from .kinds import Resource, known_resource
from .transport import Transport


class RestMapper:
    """The paths of one API server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._discovered: dict[tuple[str, str], Resource] = {}

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The path of an object; without a name, of all of its kind."""
        resource = self.resource(api_version, kind)
        scope = ["namespaces", _segment(namespace, kind)] if resource.namespaced and namespace else []
        parts = [_root(api_version), *scope, resource.plural]
        return "/".join([*parts, *([_segment(name, kind)] if name is not None else []), *([subresource] if subresource else [])])

    def resource(self, api_version: str, kind: str) -> Resource:
        """NotFound where the server doesn't know the kind."""
        return known_resource(api_version, kind) or self.discover(api_version, kind)

    def discover(self, api_version: str, kind: str) -> Resource:
        if (api_version, kind) not in self._discovered:
            try:
                served = self._transport.json("GET", _root(api_version), f"discover {api_version}")["resources"]
            except NotFound:
                served = []
            for entry in served:
                if "/" not in entry["name"]:
                    self._discovered[api_version, entry["kind"]] = Resource(entry["name"], entry["namespaced"])
        try:
            return self._discovered[api_version, kind]
        except KeyError:
            server = self._transport.target.server
            raise NotFound(f"{server} does not serve the kind {kind} in {api_version}; check its spelling, or install its CRD.") from None


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _segment(name: str, kind: str) -> str:
    """The name as a segment of a path; refused if it would lead to another path."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise Invalid(f"{name!r} cannot be the name or the namespace of a {kind}.", ["metadata.name"])
    return quote(name)
