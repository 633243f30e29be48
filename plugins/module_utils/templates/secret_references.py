# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Secret parameters of an order: `{"secretRef": {"name": ..., "key": ...}}` stands for a value in a Secret of the order's namespace.

Which parameters are secret, the template says with `no_log`. Nothing here reads a Secret: the caller does, and knows one namespace only.
No message has a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_checker import UNKNOWN, Option, Options, Problems
from .parameters import MAX_BYTES, REFERENCE

MAX_SECRETS = 20  # each is a request, and a list of parameters could hold thousands of references
NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
FORM = '{"secretRef": {"name": ..., "key": ...}}'


@dataclass(frozen=True)
class SecretRef:
    """A value in a Secret, and the parameter that refers to it."""

    name: str
    key: str
    parameter: str


class NoSuchSecret(Exception):
    """The Secret or its key does not exist, or is not text. The message is a sentence without a full stop."""


ReadSecret = Callable[[SecretRef], str]


def no_secrets(reference: SecretRef) -> str:
    """For callers without a hub."""
    raise NoSuchSecret(f"parameter {reference.parameter} refers to a Secret, and there is no hub to read it from")


@dataclass
class SecretParameters:
    """Puts values for the references in an order's parameters.

    `inlined` are the parameters whose values the order itself has. `missing` says which Secrets cannot be used; their parameters count as
    set, with a value that is not known.
    """

    read: ReadSecret
    problems: Problems
    inlined: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)
    _size: int = 0

    def resolve(self, options: Options, given: Mapping[str, Any], path: str = "", *, secret: bool = False) -> dict[str, Any]:
        """The parameters with the values of the Secrets that they refer to. `secret`: all of them are, as parts of a secret object."""
        declared = {key: option for option in options.members.values() for key in (option.name, *option.aliases)}
        return {
            name: self._value(declared[name], value, f"{path}.{name}" if path else name, secret) if name in declared else value
            for name, value in given.items()
        }

    def _value(self, option: Option, value: Any, path: str, secret: bool) -> Any:
        secret = secret or option.no_log
        if secret and isinstance(value, dict) and REFERENCE in value:
            reference = self._reference(value, path)
            return self._read(option, reference) if reference else UNKNOWN
        if option.type == "dict" and option.options is not None and isinstance(value, dict):
            return self.resolve(option.options, value, path, secret=secret)
        if option.type == "list" and isinstance(value, list):
            return [self._value(option.element, item, f"{path}[{index}]", secret) for index, item in enumerate(value)]
        if secret and value not in (None, "", [], {}):
            self.inlined.append(path)
        return value

    def _reference(self, value: Mapping[str, Any], path: str) -> SecretRef | None:
        content = value[REFERENCE]
        if isinstance(content, dict) and "namespace" in content:
            self.problems.append(f"parameter {path}.{REFERENCE} cannot name a namespace: the Secret is in that of the order")
            return None
        if len(value) > 1 or not isinstance(content, dict) or set(content) != {"name", "key"}:
            self.problems.append(f"parameter {path} must be {FORM} and nothing else, to refer to a Secret")
            return None
        name, key = content["name"], content["key"]
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self.problems.append(f"parameter {path}.{REFERENCE}.name must be the name of a Secret")
            return None
        if not isinstance(key, str) or not KEY.fullmatch(key):
            self.problems.append(f"parameter {path}.{REFERENCE}.key must be a key of a Secret: letters, digits, dots, dashes, underscores")
            return None
        if name not in self._names and len(self._names) >= MAX_SECRETS:
            self.problems.append(f"parameter {path} refers to one Secret more than the {MAX_SECRETS} that an order can have")
            return None
        self._names.add(name)
        return SecretRef(name, key, path)

    def _read(self, option: Option, reference: SecretRef) -> Any:
        if self._size > MAX_BYTES:
            return UNKNOWN  # thousands of references to a large value would keep the order's run busy; the mistake is known already
        try:
            text = self.read(reference)
        except NoSuchSecret as error:
            self.missing.append(str(error))
            return UNKNOWN
        self._size += len(text.encode())
        if self._size > MAX_BYTES:
            self.problems.append(f"the values of Secrets are longer than {MAX_BYTES:,} bytes at parameter {reference.parameter}")
            return UNKNOWN
        return _parsed(text) if option.type in ("dict", "list") else text


def _parsed(text: str) -> Any:
    """The JSON of a value that is to be an object or a list; other text is refused by its type."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
