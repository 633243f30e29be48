# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that modules for Automation Platform share, named as in infra.aap_configuration."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  aap_hostname:
    description: Address of the gateway of AAP, or of AWX, for example V(https://aap.example.com).
    type: str
    required: true
  aap_token:
    description: Token of an account, with the scope C(write) for changes.
    type: str
  aap_username:
    description: Name of the account, without O(aap_token).
    type: str
  aap_password:
    description: Password of O(aap_username).
    type: str
  aap_oauth_client_id:
    description:
      - Id of an OAuth application with the grant type C(password). The module exchanges O(aap_username) and
        O(aap_password) for a token of this application.
      - Without it, the module uses both for basic authentication.
    type: str
  aap_oauth_client_secret:
    description: Secret of O(aap_oauth_client_id).
    type: str
  aap_validate_certs:
    description: Whether to verify the certificate of the platform.
    type: bool
    default: true
  aap_ca_cert:
    description: Path to the CA certificate of the platform.
    type: path
  aap_request_timeout:
    description: Seconds for one response of the platform.
    type: float
    default: 30.0
  deadline:
    description: Seconds after which the task fails, with all its requests and all that it waits for.
    type: int
    default: 1800
requirements:
  - python >= 3.11
  - PyYAML
  - urllib3 >= 2
"""
