# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A hosted zone of Amazon Route 53. Each update is one change batch, which Route 53 does as a whole or not at all.

CREATE fails where the record set exists and DELETE where it has other values: these are the conditions of the update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..kube.errors import BadCredentials
from .dns_records import DnsError, DnsRefused, DnsUnreachable, RecordsChanged, RecordSet, RecordUpdate

try:
    import boto3
    import botocore.config
    import botocore.exceptions

    MISSING_LIBRARY = ""
except ImportError as error:
    boto3 = botocore = None
    MISSING_LIBRARY = str(error.name)

KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
REGION = "us-east-1"  # Route 53 is global, and signed for this one
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 10, 2
ESCAPED_STAR = "\\052"
PAGE = "10"  # record sets of one name
BUSY = ("PriorRequestNotComplete", "Throttling", "ThrottlingException")


def route53_client(endpoint_url: str | None, credentials: Mapping[str, str]) -> Any:
    """A client with these credentials, or with those that the SDK finds where Ansible runs."""
    if MISSING_LIBRARY:
        raise BadCredentials(
            f"The Python library {MISSING_LIBRARY} is missing where Ansible runs: install what requirements.txt of the collection names."
        )
    retries = {"total_max_attempts": ATTEMPTS, "mode": "standard"}
    config = botocore.config.Config(connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries=retries)
    return boto3.client("route53", region_name=REGION, endpoint_url=endpoint_url, config=config, **credentials)


class Route53Zone:
    """The hosted zone of that id."""

    servers: tuple[str, ...] = ()  # its records are verified with the resolvers of the machine

    def __init__(self, client: Any, zone_id: str) -> None:
        self._client = client
        self._zone_id = zone_id

    def read(self, names: Sequence[str], types: Sequence[str]) -> list[RecordSet]:
        return [record for name in names for record in self._of_name(name) if record.type in types]

    def _of_name(self, name: str) -> list[RecordSet]:
        """The list begins with the record sets of the name, if it has any."""
        answer = self._call("list_resource_record_sets", StartRecordName=name, MaxItems=PAGE)
        found = [_record_set(item) for item in answer["ResourceRecordSets"]]
        return [record for record in found if record.name == name]

    def write(self, update: RecordUpdate) -> None:
        created = [record for record in update.written if record.name in update.new]
        replaced = [record for record in update.written if record.name not in update.new]
        actions = [("DELETE", record) for record in update.deleted]
        actions += [("DELETE", update.claimed)] if update.claimed else []
        actions += [("CREATE", update.claim)] if update.claim else []
        actions += [("CREATE", record) for record in created] + [("UPSERT", record) for record in replaced]
        changes = [{"Action": action, "ResourceRecordSet": _resource_record_set(record)} for action, record in actions]
        self._call("change_resource_record_sets", ChangeBatch={"Changes": changes})

    def _call(self, operation: str, **arguments: Any) -> Any:
        called = f"Route 53, hosted zone {self._zone_id}"
        try:
            return getattr(self._client, operation)(HostedZoneId=self._zone_id, **arguments)
        except botocore.exceptions.ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code == "InvalidChangeBatch":
                raise RecordsChanged(f"{called}: the records were changed at the same time, or cannot be changed like this.") from error
            if code in BUSY:
                raise DnsError(f"{called} is busy ({code}); try again later.") from error
            raise DnsRefused(f"{called} refuses the request ({code}): check the zone's id and the permissions of the account.") from error
        except botocore.exceptions.NoCredentialsError as error:
            raise DnsRefused(f"{called}: there are no credentials; name a Secret of the site that has them.") from error
        except botocore.exceptions.BotoCoreError as error:
            raise DnsUnreachable(f"{called} does not answer ({type(error).__name__}): check the network and the proxy.") from error


def _record_set(item: Mapping[str, Any]) -> RecordSet:
    kind, name = item["Type"], item["Name"].rstrip(".").replace(ESCAPED_STAR, "*")
    values = [value["Value"] for value in item.get("ResourceRecords", [])]
    plain = [value.strip('"') if kind == "TXT" else value.rstrip(".") for value in values]
    return RecordSet(name, kind, tuple(sorted(plain)), item.get("TTL", 0))


def _resource_record_set(record: RecordSet) -> dict[str, Any]:
    values = [f'"{value}"' if record.type == "TXT" else value for value in record.values]
    return {"Name": record.name, "Type": record.type, "TTL": record.ttl, "ResourceRecords": [{"Value": value} for value in values]}
