# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that the S3 modules share: the connection, named as in amazon.aws, the workload, and writes of the state."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  bucket:
    description: Name of the bucket. It must exist, and all clusters use the same one.
    type: str
    required: true
  endpoint_url:
    description: Address of a store other than AWS. May also be set by E(AWS_ENDPOINT_URL_S3) or E(AWS_ENDPOINT_URL).
    type: str
    aliases: [aws_endpoint_url]
  region:
    description: Region of the bucket. May also be set by E(AWS_REGION) or E(AWS_DEFAULT_REGION).
    type: str
    aliases: [aws_region]
  access_key:
    description: The access key. Defaults to AWS's own credential chain, which begins with E(AWS_ACCESS_KEY_ID).
    type: str
    aliases: [aws_access_key_id, aws_access_key]
  secret_key:
    description: The secret key of O(access_key). May also be set by E(AWS_SECRET_ACCESS_KEY).
    type: str
    aliases: [aws_secret_access_key, aws_secret_key]
  session_token:
    description: The session token of temporary credentials. May also be set by E(AWS_SESSION_TOKEN).
    type: str
    aliases: [aws_session_token]
  profile:
    description: A profile of AWS's configuration files. May also be set by E(AWS_PROFILE).
    type: str
    aliases: [aws_profile]
  aws_ca_bundle:
    description:
      - Path of the CA certificates that the store's certificate is verified with. May also be set by E(AWS_CA_BUNDLE).
    type: path
  validate_certs:
    description: Whether to verify the store's certificate.
    type: bool
    default: true
  path_style:
    description:
      - Whether requests name the bucket in the path instead of the host name.
      - Defaults to true if O(endpoint_url) is set.
    type: bool
  encryption_mode:
    description: How the store encrypts objects. Defaults to the configuration of the bucket.
    type: str
    choices: [AES256, aws:kms]
  encryption_kms_key_id:
    description: The key to encrypt with, for O(encryption_mode=aws:kms).
    type: str
requirements:
  - python >= 3.11
  - boto3 >= 1.40
"""

    STATE_WRITE = r"""
options:
  epoch:
    description:
      - The epoch of the leader that this task acts for. The task writes only while this epoch is current. Required to
        write.
    type: int
  expected_revision:
    description:
      - The revision that the change is based on. The task fails if the state has another revision, unless it has the
        values already.
    type: int
  keep_history:
    description: How many revisions of the state the history keeps, the newest ones.
    type: int
    default: 1000
"""

    WORKLOAD = r"""
options:
  namespace:
    description: Namespace of the workload's C(DRPlacementControl).
    type: str
    required: true
  name:
    description: Name of the workload's C(DRPlacementControl).
    type: str
    required: true
"""
