# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clusters that OpenShift Cluster Manager makes and runs: OpenShift Dedicated, and ROSA with the customer's own account.

A cluster is found by its id, and without one by its name, which is made from the place and its hub: a run that was killed after it had
asked for the cluster finds it again, and never asks for two. The service knows no conditional writes, so before each write the lock is
read once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from ...common.third_party import yaml
from ...common.types import Object
from ...kube.errors import Conflict, Invalid, NotFound
from ...lock.fenced_writer import Change, holds
from ..base import NoSuchCluster, NotReadyYet, NotSupported, Provider, ProviderError
from ..model import Addon, ClusterRequest, IdentityProvider, Kubeconfig, ObservedCluster, Region, ResourceSet
from .api import CLIENT_ID, TOKEN_URL, URL, Access, OcmApi, segment
from .identity import TYPES, comparable, digest, htpasswd_users, identity_body, noted_as
from .model import (
    OWNER,
    STATES,
    Pool,
    asked_nodes,
    class_of,
    cluster_name,
    is_upgrade,
    listed,
    new_cluster,
    owner_of,
    pool_name,
    properties,
    refused_change,
    shown,
    spec_of,
    wanted_pools,
    without_secrets,
)
from .secret import AccessSecret

# The service takes no upgrade that would begin in less than five minutes.
UPGRADE_NOTICE = timedelta(minutes=10)


class ClusterProvider(Provider):
    """One cluster of OpenShift Cluster Manager, whose token is in the Secret `<name>-ocm` beside it."""

    TYPE: ClassVar[str] = "ocm"
    SETTINGS: ClassVar[Mapping[str, Any]] = {
        "url": {"type": "str", "default": URL, "description": "The address of OpenShift Cluster Manager's API."},
        "token_url": {"type": "str", "default": TOKEN_URL, "description": "Where an access token is had for an offline token."},
        "client_id": {"type": "str", "default": CLIENT_ID, "description": "The client that the offline token was issued for."},
        "product": {"type": "str", "choices": ["osd", "rosa"], "default": "osd", "description": "The kind of managed OpenShift."},
        "channel_group": {"type": "str", "default": "stable", "description": "The channel that versions are taken from."},
        "ccs": {"type": "bool", "default": False, "description": "Whether to make the cluster in the customer's own cloud account."},
        "aws_account_id": {"type": "str", "description": "The customer's account, with ccs on aws."},
        "autoscaling": {
            "type": "list",
            "elements": "dict",
            "description": "Classes of which an autoscaler decides the number of nodes.",
            "options": {
                "resource_class": {"type": "str", "required": True, "description": "One of those in node_requests."},
                "min_replicas": {"type": "int", "required": True, "description": "Never fewer nodes."},
                "max_replicas": {"type": "int", "required": True, "description": "Never more nodes."},
            },
        },
        "properties": {"type": "dict", "description": "What to note at the cluster there, texts by name."},
    }
    SECRETS: ClassVar[Mapping[str, Any]] = {
        "token": {"type": "str", "no_log": True, "description": "The offline token. Without it, the one that is in the Secret is used."},
        "aws_access_key_id": {"type": "str", "no_log": True, "description": "Of the customer's account, with ccs on aws."},
        "aws_secret_access_key": {"type": "str", "no_log": True, "description": "Of the customer's account, with ccs on aws."},
        "gcp_service_account": {"type": "str", "no_log": True, "description": "The key file of a service account, with ccs on gcp."},
    }

    # Every provider can do these

    def use_credentials_of(self, request: ClusterRequest) -> None:
        self._api = OcmApi(Access(**self._access_of(request)))
        self._api.hide(str(value) for value in request.secrets.values() if value)

    def create(self, request: ClusterRequest) -> ObservedCluster:
        body = new_cluster(self._name, self._owner, request, self.ref.class_label)
        writer = self.writer
        self.use_credentials_of(request)
        # Looked for before anything is written: credentials that are wrong change nothing.
        cluster = self._find(ObservedCluster())
        if cluster is None or not self._secret.exists:
            self.changes += self._secret.keep(writer, self._access_of(request), asked_nodes(wanted_pools(request)))
        return self._spec(cluster or self._make(body))

    def update(self, spec: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        writer, wanted = self.writer, wanted_pools(request)
        self.use_credentials_of(request)
        cluster = self._existing(spec)
        if problem := refused_change(cluster, request):
            raise Invalid(f"The cluster {self._name} cannot be changed like that: {problem}. Make another one.", [])
        self.changes += self._secret.keep(writer, self._access_of(request), asked_nodes(wanted))
        state = STATES.get(str(cluster.get("state")))
        if state in ("failed", "deprovisioning"):
            return self._spec(cluster)
        noted = cluster.get("properties") or {}
        if not holds(noted, properties(self._owner, request)):
            self._patch(_path(cluster), "Cluster", self._name, cluster, {"properties": {**noted, **properties(self._owner, request)}})
        upgrading = is_upgrade(cluster, request.version)
        if state == "ready":
            self._bring_pools(cluster, wanted)
            if upgrading:
                self._upgrade(cluster, request.version)
        elif upgrading or not self._has_sizes(cluster, wanted):
            raise NotReadyYet(f"The cluster {self._name} is in the state {cluster.get('state')}, and is changed when it is ready.")
        now = self._spec(cluster if self.ref.check_mode else self._api.get(_path(cluster), f"get cluster {self._name}"))
        return replace(now, updating=now.updating or upgrading)

    def delete(self, spec: ObservedCluster) -> bool:
        writer = self.writer
        if not self._secret.exists:
            return True
        cluster = self._find(spec)
        if cluster is None:
            self.changes += self._secret.remove(writer)
            return True
        if cluster.get("state") != "uninstalling":
            self._delete(_path(cluster), "Cluster", self._name, cluster, dry_run=self.ref.check_mode)
        return False

    def status(self, spec: ObservedCluster) -> ObservedCluster:
        cluster = self._find(spec) if self._secret.exists else None
        if cluster is not None:
            return self._spec(cluster)
        if self._secret.exists and spec.internal_id:
            return ObservedCluster(internal_id=spec.internal_id, status="cleanup", status_details=f"the Secret {self._secret.name} is left")
        return ObservedCluster()

    # What not every provider can

    def kubeconfig(self, spec: ObservedCluster) -> Kubeconfig:
        cluster = self._usable(spec)
        text = str(self._api.get(f"{_path(cluster)}/credentials", f"get the kubeconfig of {self._name}").get("kubeconfig") or "")
        try:
            content = yaml.safe_load(text)
        except yaml.YAMLError:
            content = None
        if not isinstance(content, dict):
            raise ProviderError(f"OpenShift Cluster Manager gives no kubeconfig of {self._name}; it has none of clusters with STS.")
        return Kubeconfig(content, hashlib.sha256(text.encode()).hexdigest()[:16])

    def dns(self, spec: ObservedCluster) -> str:
        cluster = self._usable(spec)
        for ingress in self._api.list_all(f"{_path(cluster)}/ingresses", f"list ingresses of {self._name}"):
            if ingress.get("default") and ingress.get("dns_name"):
                return str(ingress["dns_name"])
        raise NotReadyYet(f"The ingress of {self._name} has no DNS name yet.")

    def cloud_providers(self) -> list[str]:
        return sorted(str(item["id"]) for item in self._api.list_all("cloud_providers", "list cloud providers"))

    def regions(self, cloud_provider: str) -> list[Region]:
        found = self._api.list_all(f"cloud_providers/{segment(cloud_provider)}/regions", f"list regions of {cloud_provider}")
        usable = [item for item in found if item.get("enabled")]
        return [Region(str(item["id"]), str(item.get("display_name") or ""), bool(item.get("supports_multi_az"))) for item in usable]

    def add_identity_provider(self, spec: ObservedCluster, identity_provider: IdentityProvider) -> None:
        if identity_provider.type not in TYPES:
            raise NotSupported(self.TYPE, f"identity providers of the type {identity_provider.type}, only of {', '.join(TYPES)}")
        body, users, name = identity_body(identity_provider), htpasswd_users(identity_provider), identity_provider.name
        cluster = self._usable(spec)
        self._api.hide([*identity_provider.secrets.values(), *users.values()])
        path = f"{_path(cluster)}/identity_providers"
        found = self._identity_provider(path, name)
        noted, mark = noted_as(name), digest(identity_provider)
        if found is not None and found.get("type") != body["type"]:
            raise Invalid(
                f"The identity provider {name} of {self._name} is of another type, {found.get('type')}; remove it first.", ["type"]
            )
        if found is not None and self._secret.content.get(noted) == mark and holds(without_secrets(found), comparable(body)):
            return
        # Forgotten first and noted last: after a run that was killed between, the next one sends it all again.
        self._secret.forget(self.writer, noted)
        if found is None:
            found = self._post(path, "IdentityProvider", name, body)
        else:
            self._patch(f"{path}/{segment(found['id'])}", "IdentityProvider", name, found, {k: v for k, v in body.items() if k != "name"})
        if users and "id" in found:
            self._bring_users(f"{path}/{segment(found['id'])}/htpasswd_users", users)
        self.changes += self._secret.keep(self.writer, {noted: mark})

    def remove_identity_provider(self, spec: ObservedCluster, name: str) -> None:
        path = f"{_path(self._usable(spec))}/identity_providers"
        if found := self._identity_provider(path, name):
            self._delete(f"{path}/{segment(found['id'])}", "IdentityProvider", name, found)

    def apply_resources(self, spec: ObservedCluster, resource_set: ResourceSet) -> None:
        path = f"{_path(self._usable(spec))}/external_configuration/syncsets"
        wanted = {"resources": list(resource_set.items)}
        found = self._api.find(f"{path}/{segment(resource_set.name)}", f"get syncset {resource_set.name} of {self._name}")
        if found is None:
            self._post(path, "Syncset", resource_set.name, {"id": resource_set.name, **wanted})
        elif found.get("resources") != wanted["resources"]:
            # The whole list: what is in it no longer is taken away in the cluster.
            self._patch(f"{path}/{segment(resource_set.name)}", "Syncset", resource_set.name, found, wanted)

    def remove_resources(self, spec: ObservedCluster, name: str) -> bool:
        cluster = self._find(spec) if self._secret.exists else None
        if cluster is None:
            return True
        path = f"{_path(cluster)}/external_configuration/syncsets/{segment(name)}"
        found = self._api.find(path, f"get syncset {name} of {self._name}")
        if found is not None:
            self._delete(path, "Syncset", name, found)
        return found is None

    def scale(self, spec: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster = self._usable(spec)
        found = self._pools_by_class(cluster).get(resource_class)
        asked = {name: number for name, number in self._secret.asked.items() if name != resource_class}
        self.changes += self._secret.keep(self.writer, {}, asked | ({resource_class: nodes} if nodes else {}))
        if nodes:
            self._bring_pool(cluster, Pool(resource_class, nodes, bool(cluster.get("multi_az"))), found)
        elif found:
            self._remove_pool(cluster, found)
        return self._spec(cluster)

    def install_addon(self, spec: ObservedCluster, addon: Addon) -> bool:
        path = f"{_path(self._usable(spec))}/addons"
        self._api.hide(addon.parameters.values())
        body: Object = {
            "addon": {"id": addon.id},
            "parameters": [{"id": key, "value": value} for key, value in sorted(addon.parameters.items())],
        }
        found = self._api.find(f"{path}/{segment(addon.id)}", f"get add-on {addon.id} of {self._name}")
        if found is None:
            self._post(path, "AddOnInstallation", addon.id, body)
            return False
        present = {entry.get("id"): entry.get("value") for entry in listed(found.get("parameters"))}
        if any(present.get(key) != value for key, value in addon.parameters.items()):
            self._patch(f"{path}/{segment(addon.id)}", "AddOnInstallation", addon.id, found, {"parameters": body["parameters"]})
            return False
        if found.get("state") == "failed":
            raise ProviderError(f"The add-on {addon.id} of {self._name} failed: {found.get('state_description') or 'no reason is given'}.")
        return found.get("state") == "ready"

    # Who it is, there and here

    @cached_property
    def _owner(self) -> str:
        """The hub is a part of it: two of one organization may have the same place."""
        return owner_of(self.ref.kube.cluster_id(), self.ref.namespace, self.ref.name)

    @cached_property
    def _name(self) -> str:
        return cluster_name(self._owner)

    # How the service is reached

    @cached_property
    def _secret(self) -> AccessSecret:
        return AccessSecret(self.ref)

    @cached_property
    def _api(self) -> OcmApi:
        return OcmApi(self._secret.access())

    def _access_of(self, request: ClusterRequest) -> dict[str, str]:
        """How the request wants the service to be reached, which is also what is kept for later calls."""
        where = {"url": URL, "token_url": TOKEN_URL, "client_id": CLIENT_ID}
        token = request.secrets.get("token") or self._secret.access().token
        return {"token": token, **{key: str(request.settings.get(key) or default) for key, default in where.items()}}

    # The cluster

    def _find(self, spec: ObservedCluster) -> Object | None:
        found = None
        if spec.internal_id:
            found = self._api.find(f"clusters/{segment(spec.internal_id)}", f"get cluster {self._name}")
        if found is None:
            named = self._api.list_all("clusters", f"find cluster {self._name}", f"name = '{self._name}'")
            found = named[0] if named else None
            if found and (found.get("properties") or {}).get(OWNER) != self._owner:
                raise ProviderError(
                    f"OpenShift Cluster Manager has a cluster {self._name} that was not made for {self._owner}; it is left alone. "
                    "Rename or delete it there."
                )
        return found

    def _existing(self, spec: ObservedCluster) -> Object:
        found = self._find(spec)
        if found is None:
            raise NoSuchCluster(f"OpenShift Cluster Manager has no cluster {self._name} for {self._owner}.")
        return found

    def _usable(self, spec: ObservedCluster) -> Object:
        """The cluster, where it can be worked with."""
        found = self._existing(spec)
        state = str(found.get("state"))
        if STATES.get(state) in ("failed", "deprovisioning"):
            raise NoSuchCluster(f"The cluster {self._name} is in the state {state}, and nothing can be done with it but to delete it.")
        if STATES.get(state) != "ready":
            raise NotReadyYet(f"The cluster {self._name} is in the state {state}; try again when it is ready.")
        return found

    def _make(self, body: Object) -> Object:
        try:
            made = self._post("clusters", "Cluster", self._name, body, dry_run=self.ref.check_mode)
        except (Conflict, Invalid):
            # Another run may have been quicker: the service takes a name only once.
            found = self._find(ObservedCluster())
            if found is None:
                raise
            return found
        # What a dry run shows has an id that nothing is found by.
        return {"state": "pending", **made} if not self.ref.check_mode else {**body, "state": "pending"}

    def _spec(self, cluster: Object) -> ObservedCluster:
        try:
            pools = self._pools(cluster) if "id" in cluster else []
        except NotFound:
            # It has gone meanwhile, as the next look will tell.
            pools = []
        return spec_of(cluster, pools, self.ref.class_label, self._secret.asked)

    def _upgrade(self, cluster: Object, version: str) -> None:
        path = f"{_path(cluster)}/upgrade_policies"
        if not any(policy.get("version") == version for policy in self._api.list_all(path, f"list upgrades of {self._name}")):
            start = (datetime.now(UTC) + UPGRADE_NOTICE).strftime("%Y-%m-%dT%H:%M:%SZ")
            body = {"schedule_type": "manual", "upgrade_type": "OSD", "version": version, "next_run": start}
            self._post(path, "UpgradePolicy", version, body)

    # Machine pools

    def _pools(self, cluster: Object) -> list[Object]:
        return self._api.list_all(f"{_path(cluster)}/machine_pools", f"list machine pools of {self._name}")

    def _pools_by_class(self, cluster: Object) -> dict[str, Object]:
        pools = {class_of(pool, self.ref.class_label): pool for pool in self._pools(cluster)}
        return {resource_class: pool for resource_class, pool in pools.items() if resource_class}

    def _has_sizes(self, cluster: Object, wanted: list[Pool]) -> bool:
        """Whether the pools that are there have the sizes that are wanted of them."""
        present = self._pools_by_class(cluster)
        return all(pool.is_size_of(present[pool.resource_class]) for pool in wanted if pool.resource_class in present)

    def _bring_pools(self, cluster: Object, wanted: list[Pool]) -> None:
        """Have these pools. Those of classes that are asked for no longer go; without any class asked for, all stay."""
        present = self._pools_by_class(cluster)
        for pool in wanted:
            self._bring_pool(cluster, pool, present.get(pool.resource_class))
        for resource_class, found in present.items():
            if wanted and resource_class not in [pool.resource_class for pool in wanted]:
                self._remove_pool(cluster, found)

    def _bring_pool(self, cluster: Object, pool: Pool, found: Object | None) -> None:
        path = f"{_path(cluster)}/machine_pools"
        if found is None:
            self._post(path, "MachinePool", pool_name(pool.resource_class), pool.body(self.ref.class_label))
        elif not pool.is_size_of(found):
            self._patch(f"{path}/{segment(found['id'])}", "MachinePool", found["id"], found, pool.size)

    def _remove_pool(self, cluster: Object, found: Object) -> None:
        self._delete(f"{_path(cluster)}/machine_pools/{segment(found['id'])}", "MachinePool", found["id"], found)

    # Identity providers

    def _identity_provider(self, path: str, name: str) -> Object | None:
        found = self._api.list_all(path, f"list identity providers of {self._name}")
        return next((item for item in found if item.get("name") == name), None)

    def _bring_users(self, path: str, users: Mapping[str, str]) -> None:
        """Have exactly these users. Their passwords can't be compared, so they are set."""
        present = {str(user.get("username")): user for user in self._api.list_all(path, f"list htpasswd users of {self._name}")}
        for user, password in users.items():
            if user in present:
                self._patch(f"{path}/{segment(present[user]['id'])}", "HTPasswdUser", user, {}, {"hashed_password": password})
            else:
                self._post(path, "HTPasswdUser", user, {"username": user, "hashed_password": password})
        for user, found in present.items():
            if user not in users:
                self._delete(f"{path}/{segment(found['id'])}", "HTPasswdUser", user, {})

    # Writes: each is fenced, and noted without secrets

    def _post(self, path: str, kind: str, name: str, body: Object, *, dry_run: bool = False) -> Object:
        made = body
        if dry_run or self._may_write():
            made = self._api.post(path, f"create {kind} {name}", body, dry_run=dry_run) or body
        self.changes.append(Change("created", None, shown(kind, name, body)))
        return made

    def _patch(self, path: str, kind: str, name: str, found: Object, body: Object) -> None:
        if self._may_write():
            self._api.patch(path, f"change {kind} {name}", body)
        before = {key: found[key] for key in body if key in found}
        self.changes.append(Change("changed", shown(kind, name, before), shown(kind, name, body)))

    def _delete(self, path: str, kind: str, name: str, found: Object, *, dry_run: bool = False) -> None:
        if dry_run or self._may_write():
            self._api.delete(path, f"delete {kind} {name}", dry_run=dry_run)
        self.changes.append(Change("deleted", shown(kind, name, found), None))

    def _may_write(self) -> bool:
        if self.ref.check_mode:
            return False
        self.writer.verify()
        return True


def _path(cluster: Object) -> str:
    return f"clusters/{segment(str(cluster['id']))}"
