"""What the sandbox needs from outside, fetched and compiled before anything starts: programs and other projects' API definitions."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from . import debian, gobuild, upstream
from .screen import UserError


def build(
    s3: bool = False,
    capi: bool = False,
    apis: bool = False,
    hypershift: bool = True,
    flux: bool = False,
    gitops: bool = False,
    gitea: bool = False,
) -> None:
    """Make ready what is missing: Kubernetes, HyperShift's CRDs, and the selected parts. `apis` is what only tests use.

    An activated environment then has the compiled kubectl.
    """
    kubectl = gobuild.programs(gobuild.KUBERNETES)["kubectl"]
    if sys.prefix != sys.base_prefix and _is_ours(kubectl):
        _link(kubectl, Path(sys.prefix) / "bin" / "kubectl")
    if hypershift:
        upstream.folder(upstream.HYPERSHIFT)
    parts = (
        (gobuild.S3, s3),
        (gobuild.CLUSTER_API, capi),
        (gobuild.FLUX, flux),
        (gobuild.REGISTRY, gitops or flux),
        (gobuild.GITEA, gitea),
    )
    for program in [program for program, selected in parts if selected]:
        gobuild.programs(program)
    if gitops or flux or gitea:
        debian.find(debian.GIT)
    if apis:
        for module in (upstream.ACM, upstream.OCM, upstream.OPENSHIFT):
            upstream.folder(module)
        with contextlib.suppress(UserError):  # tests have a stand-in for these, and the table at their end says so
            upstream.folder(upstream.METALLB)
        upstream.ramen_crds()
        debian.find(debian.KNOT)


def _is_ours(path: Path) -> bool:
    return path.is_relative_to(gobuild.cache_folder())


def _link(kubectl: Path, link: Path) -> None:
    """Point the link to it, unless something that is not ours has that name."""
    if link.is_symlink() and _is_ours(link.readlink()) and link.readlink() != kubectl:
        link.unlink(missing_ok=True)
    # Another process may create it first.
    with contextlib.suppress(FileExistsError):
        link.symlink_to(kubectl)
