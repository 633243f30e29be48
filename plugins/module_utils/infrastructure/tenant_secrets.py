# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Secrets that the parameters of an order refer to: those of its own namespace, and no others. Nothing is written."""

from __future__ import annotations

from ..common.types import Object
from ..kube.client import Kube
from ..kube.secret_data import NotText, decode
from ..templates.secret_references import NoSuchSecret, SecretRef


class TenantSecrets:
    """Reads the Secrets of one namespace, each of them once."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._read: dict[str, Object | None] = {}

    def read(self, reference: SecretRef) -> str:
        """The value that the reference stands for; NoSuchSecret says what the tenant has to do."""
        name, key, where = reference.name, reference.key, f"parameter {reference.parameter} refers to"
        if name not in self._read:
            self._read[name] = self._kube.find("v1", "Secret", name, self._namespace)
        secret = self._read[name]
        if secret is None:
            raise NoSuchSecret(f"{where} the Secret {name}, which does not exist: create it with the key {key} in {self._namespace}")
        data = secret.get("data") or {}
        if key not in data:
            raise NoSuchSecret(f"{where} the key {key}, which the Secret {name} does not have: add it")
        try:
            return decode(data[key])
        except NotText as error:
            raise NoSuchSecret(f"{where} the key {key} of the Secret {name}, which {error}: replace its value") from None
