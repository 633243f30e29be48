# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Classes of virtual machines: what a site offers, what of it an order may use, and the settings of HyperShift's KubeVirt nodes for it.

Pure; it sends nothing. Everything is checked before anything is created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.argument_values import clip
from ..common.quantity import bytes_of
from ..common.text import did_you_mean
from ..common.types import Object
from ..kube.errors import Invalid, KubeError
from ..providers.model import NodeRequest
from .errors import SiteMistake

VM = "vm"
KEYS = ("kind", "labels", "cores", "memory", "root_volume_size", "storage_class", "network", "max_nodes")
REQUIRED = ("cores", "memory")
NUMBERS, SIZES, TEXTS = ("cores", "max_nodes"), ("memory", "root_volume_size"), ("storage_class", "network")
ROOT_VOLUME_SIZE = "32Gi"
LIMITS = ("nodes", "cores", "memory")


class LimitExceeded(KubeError):
    """An order asks for more than its site allows. Only another order, or another limit, helps."""


@dataclass(frozen=True)
class VmClass:
    """Virtual machines of one size. `network` is a NetworkAttachmentDefinition, as namespace/name, beside the network of pods."""

    name: str
    cores: int
    memory: str
    root_volume_size: str = ROOT_VOLUME_SIZE
    storage_class: str = ""
    network: str = ""
    max_nodes: int | None = None

    def node_platform(self) -> Object:
        """The platform of a NodePool of this class."""
        volume = {"size": self.root_volume_size, **({"storageClass": self.storage_class} if self.storage_class else {})}
        kubevirt: Object = {
            "compute": {"cores": self.cores, "memory": self.memory},
            "rootVolume": {"type": "Persistent", "persistent": volume},
        }
        if self.network:
            kubevirt["additionalNetworks"] = [{"name": self.network}]
        return {"kubevirt": kubevirt}


def vm_classes(settings: Mapping[str, Any]) -> dict[str, VmClass]:
    """The classes of kind vm among the site's `classes`; Invalid names the key of every mistake."""
    problems: list[str] = []
    found = {
        str(name): _vm_class(str(name), entry, problems)
        for name, entry in settings.items()
        if isinstance(entry, Mapping) and entry.get("kind") == VM
    }
    if problems:
        raise SiteMistake(f"The site's classes cannot be used: {'; '.join(problems)}.", ["classes"])
    return {name: item for name, item in found.items() if item}


def node_platforms(settings: Mapping[str, Any], requests: Sequence[NodeRequest], limits: Mapping[str, Any]) -> tuple[Object, Object]:
    """The platforms of the requested classes, and what they need in all; LimitExceeded where that is more than is allowed."""
    classes, allowed = vm_classes(settings), _limits(limits)
    used: dict[str, int] = {}
    for request in requests:
        if request.resource_class not in classes:
            raise Invalid(_no_such_class(request.resource_class, settings, classes), ["node_requests"])
        used[request.resource_class] = used.get(request.resource_class, 0) + request.number_of_nodes
    for name, nodes in used.items():
        most = classes[name].max_nodes
        if most is not None and nodes > most:
            raise LimitExceeded(f"{nodes} nodes of {name} are requested, and the site allows {most} in a cluster: request fewer.")
    needed = {
        "nodes": sum(used.values()),
        "cores": sum(nodes * classes[name].cores for name, nodes in used.items()),
        "memory": sum(nodes * bytes_of(classes[name].memory) for name, nodes in used.items()),
    }
    for key, most in allowed.items():
        if needed[key] > most:
            amounts = ", ".join(f"{nodes} of {name}" for name, nodes in used.items())
            raise LimitExceeded(
                f"The requested nodes ({amounts}) need {_shown(key, needed[key])}, and the site allows {_shown(key, most)} in a cluster: "
                "request fewer nodes, or smaller ones."
            )
    return {name: classes[name].node_platform() for name in used}, needed


def _vm_class(name: str, entry: Mapping[str, Any], problems: list[str]) -> VmClass | None:
    path, before = f"classes.{clip(name)}", len(problems)
    problems += [f"{path}.{clip(str(key))} is not known{did_you_mean(str(key), KEYS)}" for key in entry if key not in KEYS]
    problems += [f"{path}.{key} is missing" for key in REQUIRED if key not in entry]
    for key in set(NUMBERS) & entry.keys():
        if isinstance(entry[key], bool) or not isinstance(entry[key], int) or entry[key] < 1:
            problems.append(f"{path}.{key} must be a whole number of at least 1")
    for key in set(SIZES) & entry.keys():
        problems += [f"{path}.{key} must be a size such as 8Gi"] if _bytes(entry[key]) is None else []
    problems += [f"{path}.{key} must be a string" for key in set(TEXTS) & entry.keys() if not (isinstance(entry[key], str) and entry[key])]
    if len(problems) > before:
        problems[before:] = sorted(problems[before:])
        return None
    return VmClass(name, **{key: value for key, value in entry.items() if key not in ("kind", "labels")})


def _limits(limits: Mapping[str, Any]) -> dict[str, int]:
    problems = [f"limits.{clip(str(key))} is not known{did_you_mean(str(key), LIMITS)}" for key in limits if key not in LIMITS]
    parsed: dict[str, int] = {}
    for key in limits.keys() & set(LIMITS):
        value, is_size = limits[key], key == "memory"
        number = _bytes(value) if is_size else value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
        if number is None:
            problems.append(f"limits.{key} must be " + ("a size such as 64Gi" if is_size else "a whole number"))
        else:
            parsed[key] = number
    if problems:
        raise SiteMistake(f"The limits of virtual machines cannot be used: {'; '.join(sorted(problems))}.", ["limits"])
    return {key: parsed[key] for key in LIMITS if key in parsed}


def _bytes(value: Any) -> int | None:
    """The bytes of a size. YAML reads one without a suffix as a number."""
    try:
        return None if isinstance(value, bool) else bytes_of(str(value)) or None
    except ValueError:
        return None


def _no_such_class(name: str, settings: Mapping[str, Any], classes: Mapping[str, VmClass]) -> str:
    offered = f"the site offers {', '.join(classes)}" if classes else "the site offers none"
    if name in settings:
        return f"{clip(name)} is not a class of virtual machines, because its kind is not {VM}; {offered}."
    return f"There is no class {clip(name)} of virtual machines{did_you_mean(name, classes)}; {offered}."


def _shown(key: str, amount: int) -> str:
    return f"{amount / 2**30:g}Gi of memory" if key == "memory" else f"{amount} {key}"
