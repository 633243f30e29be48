"""What the error of a request says about the cluster."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.errors import answer_of
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Unauthorized, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import errors
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.untrusted import BadKubeconfig
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.health import SecretNotFound


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.Unreachable("x"), Unreachable),
        (errors.ServerError("x"), Unreachable),
        (errors.TooManyRequests("x"), Unreachable),
        (errors.Unexpected(ValueError("x")), Unreachable),
        (errors.Unauthorized("x"), Unauthorized),
        (errors.Forbidden("x"), Unauthorized),
        (errors.Untrusted("x"), Unauthorized),
        (BadKubeconfig("x"), Unauthorized),
        (SecretNotFound("x"), Unauthorized),
    ],
)
def test_no_error_means_that_an_object_is_absent(error: errors.KubeError, kind: type) -> None:
    answer = answer_of(error)
    assert isinstance(answer, kind)
    assert answer.why == str(error)
