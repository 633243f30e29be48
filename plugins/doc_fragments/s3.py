# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How to reach the bucket: the options that the S3 modules share, named as in amazon.aws, and the place they are about."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  bucket:
    description: Name of the bucket. It must be there, and all clusters use the same.
    type: str
    required: true
  endpoint_url:
    description: Address of a store that is not AWS's own. May also be set by E(AWS_ENDPOINT_URL_S3) or E(AWS_ENDPOINT_URL).
    type: str
    aliases: [aws_endpoint_url]
  region:
    description: Region of the bucket. May also be set by E(AWS_REGION) or E(AWS_DEFAULT_REGION).
    type: str
    aliases: [aws_region]
  access_key:
    description: The access key. Without it, AWS's own ways are used, E(AWS_ACCESS_KEY_ID) first.
    type: str
    aliases: [aws_access_key_id, aws_access_key]
  secret_key:
    description: The secret key that belongs to O(access_key). May also be set by E(AWS_SECRET_ACCESS_KEY).
    type: str
    aliases: [aws_secret_access_key, aws_secret_key]
  session_token:
    description: The session token of temporary credentials. May also be set by E(AWS_SESSION_TOKEN).
    type: str
    aliases: [aws_session_token]
  profile:
    description: A profile of AWS's own configuration files. May also be set by E(AWS_PROFILE).
    type: str
    aliases: [aws_profile]
  aws_ca_bundle:
    description: Path of the authorities that may have signed the store's certificate. May also be set by E(AWS_CA_BUNDLE).
    type: path
  validate_certs:
    description: Whether the store's certificate is checked.
    type: bool
    default: true
  path_style:
    description:
      - Whether the bucket is named in the path and not in the host name.
      - Without it, this is so where O(endpoint_url) is given.
    type: bool
  encryption_mode:
    description: How the store encrypts what is written. Without it, as the bucket is configured.
    type: str
    choices: [AES256, aws:kms]
  encryption_kms_key_id:
    description: The key to encrypt with, where O(encryption_mode=aws:kms).
    type: str
requirements:
  - python >= 3.11
  - boto3 >= 1.40
"""

    PLACE = r"""
options:
  namespace:
    description: Namespace of the placement control that is agreed on.
    type: str
    required: true
  name:
    description: Its name.
    type: str
    required: true
"""
