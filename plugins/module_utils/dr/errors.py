# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From an error of a request to a cluster to the cluster's answer."""

from __future__ import annotations

from ..kube import errors
from ..registry.health import SecretNotFound
from .read_results import Unauthorized, Unknown, Unreachable

# Without valid credentials the cluster may well run. A certificate that the kubeconfig does not trust is one such case.
NO_ACCESS = (
    errors.Unauthorized,
    errors.Forbidden,
    errors.Untrusted,
    errors.BadCredentials,
    errors.AddressNotAllowed,
    SecretNotFound,
)


def answer_of(error: errors.KubeError) -> Unknown:
    """The answer that an error means. Only the caller knows whether NotFound means that an object is absent."""
    return Unauthorized(str(error)) if isinstance(error, NO_ACCESS) else Unreachable(str(error))
