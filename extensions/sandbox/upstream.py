"""API definitions of other projects, from their Go modules: CRDs of HyperShift, Open Cluster Management (ACM), OpenShift, MetalLB and
Ramen, OCM's OpenAPI.

`go.mod` in `go/upstream`, `go/metallb` and `go/ramen` pins the versions, `go.sum` their checksums. Go downloads a module once, into the
user's module cache, and the definitions are read there; nothing of them is part of the collection. Installing them is up to the caller.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from ...plugins.module_utils.common.types import Object
from .crds import SafeLoader, load_crd
from .gobuild import GO_FLAGS, GO_SETTINGS, SOURCES, go_command
from .screen import UserError, stage


@dataclass(frozen=True)
class Module:
    """A Go module that the `go.mod` in a folder of `go` requires, and what is read from it."""

    path: str
    title: str
    pinned_in: str = "upstream"


HYPERSHIFT = Module("github.com/openshift/hypershift/api", "HyperShift's CRDs")
ACM = Module("open-cluster-management.io/api", "Open Cluster Management's CRDs")
OCM = Module("github.com/openshift-online/ocm-sdk-go", "OpenShift Cluster Manager's OpenAPI description")
OPENSHIFT = Module("github.com/openshift/api", "OpenShift's CRDs")
# Some module proxies refuse this one. In a folder of its own it does not keep Go from the others.
METALLB = Module("go.universe.tf/metallb", "MetalLB's CRDs", "metallb")
RAMEN_TYPES = "github.com/ramendr/ramen/api/v1alpha1"


@functools.cache
def folder(module: Module) -> Path:
    """The module's folder in the user's module cache. Go downloads the module if it is not there yet."""
    answer = _download(module, GOPROXY="off")
    if answer.returncode:
        with stage(module.title):
            answer = _download(module)
            if answer.returncode:
                said = json.loads(answer.stdout)["Error"] if answer.stdout else answer.stderr.strip()
                raise UserError(_failure(module.title, said))
    return Path(json.loads(answer.stdout)["Dir"])


def hypershift_crds() -> list[Object]:
    """HostedCluster and NodePool with the fields that no feature gate turns off, as HyperShift's installer completes them."""
    api = folder(HYPERSHIFT) / "hypershift" / "v1beta1"
    generated = api / "zz_generated.featuregated-crd-manifests"
    names = [f"{plural}.hypershift.openshift.io" for plural in ("hostedclusters", "nodepools")]
    clusters, pools = (load_crd(generated / name / "AAA_ungated.yaml") for name in names)
    for crd in (clusters, pools):
        # The key of this annotation ends with a feature gate, here with none, and the API server refuses it.
        del crd["metadata"]["annotations"]
    (scale,) = (api / "manual-override-crd-manifests" / names[1]).glob("*.yaml")
    for version, addition in zip(pools["spec"]["versions"], load_crd(scale)["spec"]["versions"], strict=True):
        version["subresources"] |= addition["subresources"]
    return [clusters, pools]


def acm_crds() -> list[Object]:
    """Managed clusters, their sets and placements, and manifest works."""
    module = folder(ACM)
    return [load_crd(path) for pattern in ("cluster/v1*/*.crd.yaml", "work/v1/*.crd.yaml") for path in sorted(module.glob(pattern))]


def route_crd() -> Object:
    """OpenShift's Route. A cluster of OpenShift serves it by an API server of its own, which has the same schema."""
    return load_crd(folder(OPENSHIFT) / "route" / "v1" / "zz_generated.crd-manifests" / "routes.crd.yaml")


def metallb_crds() -> list[Object]:
    """MetalLB's address pools and their advertisement by ARP."""
    bases = folder(METALLB) / "config" / "crd" / "bases"
    return [load_crd(bases / f"metallb.io_{plural}.yaml") for plural in ("ipaddresspools", "l2advertisements")]


@functools.cache
def ocm_description() -> Path:
    """The OpenAPI description of OpenShift Cluster Manager's `clusters_mgmt/v1`, a JSON file."""
    return folder(OCM) / "openapi" / "clusters_mgmt" / "v1" / "openapi.json"


@functools.cache
def ramen_crds() -> list[Object]:
    """Ramen's CRDs. Its module has only their types in Go, from which controller-gen makes them."""
    go = go_command()
    # controller-gen calls Go to read the types.
    path = os.pathsep.join([str(Path(go).parent), os.environ.get("PATH", os.defpath)])
    settings = GO_SETTINGS | {"PATH": path, "GOFLAGS": " ".join(GO_FLAGS)}
    command = [go, "tool", "controller-gen", "crd", f"paths={RAMEN_TYPES}", "output:crd:stdout"]
    with stage("Ramen's CRDs"):
        answer = subprocess.run(command, cwd=SOURCES / "ramen", env=os.environ | settings, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise UserError(_failure("Ramen's CRDs", answer.stderr.strip()))
    return list(yaml.load_all(answer.stdout, Loader=SafeLoader))


def _download(module: Module, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [go_command(), "mod", "download", "-json", module.path]
    environment = os.environ | GO_SETTINGS | settings
    return subprocess.run(command, cwd=SOURCES / module.pinned_in, env=environment, capture_output=True, text=True, check=False)


def _failure(title: str, said: str) -> str:
    return f"Go cannot download {title}: check the network, the proxy or GOPROXY, and run the same command again. Go says: {said}"
