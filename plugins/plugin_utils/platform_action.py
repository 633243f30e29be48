# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of the actions that use Automation Platform."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLATFORM, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid, KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.client import Access, PlatformApi
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.errors import InvalidDocument
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction


class PlatformAction(BaseAction):
    """Connects to the platform that the shared arguments describe."""

    SHARED: ClassVar[Spec] = PLATFORM
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (KubeError,)

    def failure(self, error: Exception) -> dict[str, Any]:
        problems = {"problems": error.problems} if isinstance(error, InvalidDocument) else {}
        return super().failure(error) | problems

    @staticmethod
    def api(parameters: dict[str, Any]) -> PlatformApi:
        if parameters["deadline"] < 1 or parameters["aap_request_timeout"] <= 0:
            raise Invalid("deadline and aap_request_timeout are seconds: set at least 1.", ["deadline"])
        hostname = str(parameters["aap_hostname"])
        access = Access(
            hostname if "://" in hostname else f"https://{hostname}",
            token=parameters["aap_token"] or "",
            username=parameters["aap_username"] or "",
            password=parameters["aap_password"] or "",
            client_id=parameters["aap_oauth_client_id"] or "",
            client_secret=parameters["aap_oauth_client_secret"] or "",
            verify=parameters["aap_validate_certs"],
            ca_cert=parameters["aap_ca_cert"] or "",
            timeout=parameters["aap_request_timeout"],
        )
        return PlatformApi(access, parameters["deadline"])
