# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kinds of Flux that this collection writes and reads. It sends nothing."""

from __future__ import annotations

from ..kube.kinds import register

GROUP_SUFFIX = ".toolkit.fluxcd.io"
SOURCE = f"source{GROUP_SUFFIX}/v1"
KUSTOMIZE = f"kustomize{GROUP_SUFFIX}/v1"
HELM = f"helm{GROUP_SUFFIX}/v2"
NOTIFICATION = f"notification{GROUP_SUFFIX}/v1beta3"

NAMESPACE = "flux-system"
NAME = "flux-system"  # of the GitRepository, the Kustomization and their Secret, as Flux's own bootstrap names them

for _api_version, _kind, _plural in (
    (SOURCE, "GitRepository", "gitrepositories"),
    (SOURCE, "HelmRepository", "helmrepositories"),
    (SOURCE, "OCIRepository", "ocirepositories"),
    (KUSTOMIZE, "Kustomization", "kustomizations"),
    (HELM, "HelmRelease", "helmreleases"),
    (NOTIFICATION, "Provider", "providers"),
    (NOTIFICATION, "Alert", "alerts"),
):
    register(_api_version.partition("/")[0], _kind, _plural)
