"""The arguments of the event source s3_coordination."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import TTL
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import DR_PLACEMENTS, Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import BadOptions

REQUIRED = {"bucket": "coordination", "workloads": ["a/b"]}


def test_unset_variables_of_a_rulebook_leave_the_defaults() -> None:
    unset = {"cluster": "", "ttl": "", "endpoint_url": "", "validate_certs": ""}
    settings = Settings.from_arguments(REQUIRED | unset | {"holder": "east"})
    assert (settings.holder, settings.ttl, settings.poll, settings.connections) == ("east", TTL, 5, 16)
    assert (settings.cluster, settings.probe) == ("", None)
    assert settings.store == {"bucket": "coordination", "validate_certs": True}


def test_values_have_the_types_of_their_options() -> None:
    settings = Settings.from_arguments(REQUIRED | {"cluster": "east", "ttl": "12.5", "path_style": "yes", "aws_region": "north"})
    assert (settings.holder, settings.cluster, settings.ttl) == ("east", "east", 12.5)
    assert (settings.store["path_style"], settings.store["region"]) == (True, "north")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"bucket": ""}, "bucket is required"),
        ({"workloads": []}, "at least one workload"),
        ({"workloads": "a/b"}, "workloads must be a list"),
        ({"workloads": ["database"]}, "'database' is not a workload"),
        ({"workloads": ["a/b", {"namespace": "a", "name": "b"}]}, "duplicates: a/b"),
        ({"workloads": ["A/b"]}, "not a valid name"),
        ({"workload": ["a/b"]}, r"workload is not known to this event source \(did you mean workloads\?\)"),
        ({"ttl": "long", "connections": "2.5"}, "argument ttl must be a number, .*; argument connections must be an integer"),
        ({"encryption_mode": "rot13"}, 'encryption_mode must be one of "AES256", "aws:kms"'),
        ({"poll_interval": 0}, "set more than 0"),
        ({"connections": 1}, "at least 2"),
        ({"kubernetes": {}}, "kubernetes needs cluster"),
        ({"cluster": "east", "kubernetes": {"kubeconfg": "x"}}, "did you mean kubeconfig"),
        ({"workloads": ""}, "one of the arguments workloads, kubernetes is required"),
        ({"registry_namespace": "dr"}, "registry_namespace needs kubernetes"),
        ({"registry_interval": 0.5}, "set at least 1"),
        ({"secret_key": ["hunter2"]}, "secret_key must be a string, not a list"),
    ],
)
def test_bad_arguments_get_one_clear_message(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadOptions, match=expected) as raised:
        Settings.from_arguments(REQUIRED | changes)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"workloads": ["a/b"]}, "argument workloads is not known to this event source"),
        ({"kubernetes": ""}, "argument kubernetes is required"),
        ({"site_namespaces": "dr"}, "did you mean site_namespace"),
    ],
)
def test_bad_arguments_of_dr_placements_get_one_message_that_names_it(changes: dict[str, Any], expected: str) -> None:
    valid = {"bucket": "coordination", "cluster": "east", "kubernetes": {"kubeconfig": "/etc/kubeconfig"}}
    assert Settings.from_arguments(valid | {"site_namespace": ""}, DR_PLACEMENTS).site_namespace == "openfleet-system"
    assert Settings.from_arguments(valid | {"site_namespace": "dr"}, DR_PLACEMENTS).site_namespace == "dr"
    with pytest.raises(BadOptions, match=f"openfleet.clusters.dr_placements cannot start: .*{expected}"):
        Settings.from_arguments(valid | changes, DR_PLACEMENTS)


def test_without_workloads_those_of_the_cluster_are_followed() -> None:
    cluster = {"cluster": "east", "kubernetes": {"kubeconfig": "/etc/kubeconfig"}}
    settings = Settings.from_arguments({"bucket": "coordination", "registry_namespace": "dr"} | cluster)
    assert (settings.follow_drpcs, settings.workloads, settings.connection["kubeconfig"]) == (True, [], "/etc/kubeconfig")
    assert (settings.registry_namespace, settings.registry_interval) == ("dr", 60)
    assert not Settings.from_arguments(REQUIRED | cluster).follow_drpcs
