# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write or delete the DNS records of a cluster, and check whether they resolve. Documented in the module of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_backends import zone_of
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_records import (
    DnsRecords,
    RecordSet,
    RecordUpdate,
    wanted_records,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.dns_resolution import missing_records
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.modules import cluster_dns_records
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_dns_records.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_dns_records.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        domain, is_present = parameters["domain"] or f"{subject.ref.name}.{parameters['zone']}", parameters["state"] == "present"
        try:
            wanted = _wanted(subject.ref.name, domain, parameters, _targets(parameters["records"] or {}) if is_present else {})
        except Invalid:
            if is_present:
                raise
            return _result(domain, [], None)  # a domain that is refused never had records, and must not keep a cluster from its deletion
        zone = zone_of(subject.ref.kube, subject.names.site_namespace, parameters["zone"], parameters)
        with self.changing(subject, parameters) as provider:
            records = DnsRecords(zone, domain, subject.owner.key, provider.writer, self.check_mode, subject.former_uids())
            if is_present:
                subject.record_dns(provider.writer, domain, parameters["zone"], parameters)
            update = records.apply(wanted, [f"{name}.{domain}" for name in parameters["keep"]]) if is_present else records.release()
        result = _result(domain, wanted, update)
        if not is_present:
            return result
        missing = missing_records(wanted, parameters["resolvers"] or list(zone.servers))
        return result | {"missing": missing, "visible": not missing, "part": _part(domain, missing)}


def _wanted(cluster: str, domain: str, parameters: dict[str, Any], targets: dict[str, list[str]]) -> list[RecordSet]:
    if not parameters["domain"] and "." in cluster:
        raise Invalid(f"{cluster} has a dot, and would have names below those of another cluster: set domain.", ["domain"])
    return wanted_records(domain, parameters["zone"], targets, parameters["ttl"])


def _result(domain: str, wanted: Sequence[RecordSet], update: RecordUpdate | None) -> dict[str, Any]:
    return {"changed": update is not None, "records": [_shown(record) for record in wanted], "diff": _diff(domain, update)}


def _part(domain: str, missing: Sequence[str]) -> dict[str, Any]:
    if not missing:
        return {"ready": True, "reason": "RecordsVisible", "message": f"The DNS records of {domain} are visible"}
    return {"ready": False, "reason": "RecordsNotVisible", "message": f"The DNS records {', '.join(missing)} are not visible yet"}


def _targets(records: dict[str, Any]) -> dict[str, list[str]]:
    return {str(name): [str(target) for target in targets] if isinstance(targets, list) else [] for name, targets in records.items()}


def _shown(record: RecordSet) -> dict[str, Any]:
    return {"name": record.name, "type": record.type, "values": list(record.values)}


def _diff(domain: str, update: RecordUpdate | None) -> dict[str, str]:
    header = f"DNS records of {domain}"
    before, after = (_lines(records) for records in (((*update.deleted, *update.replaced), update.written) if update else ((), ())))
    return {"before_header": header, "after_header": header, "before": before, "after": after}


def _lines(records: Sequence[RecordSet]) -> str:
    return "".join(f"{record}\n" for record in records)
