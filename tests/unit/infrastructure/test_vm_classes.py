"""Classes of virtual machines: settings of nodes, limits, and a message for each mistake."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.quantity import bytes_of
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.vm_classes import LimitExceeded, node_platforms
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest

SMALL = {"kind": "vm", "cores": 2, "memory": "8Gi"}
LARGE = SMALL | {"cores": 8, "memory": "32Gi", "root_volume_size": "64Gi", "storage_class": "fast", "network": "nets/blue", "max_nodes": 3}
CLASSES: dict[str, Any] = {"vm-small": SMALL, "vm-large": LARGE, "fc430": {"kind": "agent"}}


def platforms(asked: dict[str, int], classes: dict[str, Any] | None = None, **limits: Any) -> tuple[Any, Any]:
    return node_platforms(classes or CLASSES, [NodeRequest(*item) for item in asked.items()], limits)


def test_class_becomes_the_platform_of_its_nodes() -> None:
    made, needed = platforms({"vm-small": 2, "vm-large": 1})
    assert made == {
        "vm-small": {
            "kubevirt": {"compute": {"cores": 2, "memory": "8Gi"}, "rootVolume": {"type": "Persistent", "persistent": {"size": "32Gi"}}}
        },
        "vm-large": {
            "kubevirt": {
                "compute": {"cores": 8, "memory": "32Gi"},
                "rootVolume": {"type": "Persistent", "persistent": {"size": "64Gi", "storageClass": "fast"}},
                "additionalNetworks": [{"name": "nets/blue"}],
            }
        },
    }
    assert needed == {"nodes": 3, "cores": 12, "memory": 48 * 2**30}


@pytest.mark.parametrize("limits", [{}, {"nodes": 3, "cores": 12, "memory": "48Gi"}])
def test_limits_that_are_just_met(limits: Any) -> None:
    platforms({"vm-small": 2, "vm-large": 1}, **limits)


@pytest.mark.parametrize(
    ("nodes", "limits", "said"),
    [
        ({"vm-large": 4}, {}, "4 nodes of vm-large are requested, and the site allows 3 in a cluster"),
        ({"vm-small": 3}, {"nodes": 2}, "need 3 nodes, and the site allows 2 nodes"),
        ({"vm-small": 3}, {"cores": 5}, r"\(3 of vm-small\) need 6 cores, and the site allows 5 cores"),
        ({"vm-small": 3}, {"memory": "20Gi"}, "need 24Gi of memory, and the site allows 20Gi of memory"),
    ],
)
def test_more_than_a_limit_is_refused_with_both_numbers(nodes: dict[str, int], limits: Any, said: str) -> None:
    with pytest.raises(LimitExceeded, match=said) as caught:
        platforms(nodes, **limits)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vm-smal", "There is no class vm-smal of virtual machines .did you mean vm-small.*the site offers vm-small, vm-large"),
        ("fc430", "fc430 is not a class of virtual machines, because its kind is not vm"),
    ],
)
def test_class_that_does_not_exist_is_named(name: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        platforms({name: 1})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"cores": 0}, "classes.x.cores must be a whole number of at least 1"),
        ({"cores": True}, "classes.x.cores must be a whole number"),
        ({"cores": "2"}, "classes.x.cores must be a whole number"),
        ({"max_nodes": -1}, "classes.x.max_nodes must be a whole number"),
        ({"memory": "8 GB"}, "classes.x.memory must be a size such as 8Gi"),
        ({"memory": None}, "classes.x.memory must be a size"),
        ({"root_volume_size": "0"}, "classes.x.root_volume_size must be a size"),
        ({"storage_class": ""}, "classes.x.storage_class must be a string"),
        ({"network": 5}, "classes.x.network must be a string"),
        ({"storageclass": "fast"}, "classes.x.storageclass is not known.*storage_class"),
    ],
)
def test_mistake_in_a_class_is_named_by_its_key(entry: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        platforms({"x": 1}, {"x": SMALL | entry})


def test_all_mistakes_are_in_one_message() -> None:
    with pytest.raises(Invalid, match=r"classes\.x\.cores is missing; classes\.x\.memory is missing; classes\.y\.memory must be"):
        platforms({"x": 1}, {"x": {"kind": "vm"}, "y": SMALL | {"memory": "much"}})


@pytest.mark.parametrize(
    ("limits", "said"),
    [({"core": 5}, "limits.core is not known"), ({"cores": "5"}, "limits.cores must be a whole number"), ({"memory": "x"}, "such as 64Gi")],
)
def test_mistake_in_the_limits_is_named(limits: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        platforms({"vm-small": 1}, **limits)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("1Ki", 1024), ("1.5Gi", 3 * 2**29), ("2G", 2 * 10**9), ("3k", 3000)])
def test_sizes_of_kubernetes(text: str, number: int) -> None:
    assert bytes_of(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "1gi", "-1", "1e3", "1 Gi", "1" * 20])
def test_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        bytes_of(text)
