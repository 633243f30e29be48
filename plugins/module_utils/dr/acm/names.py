# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of the objects on a hub that stand for an object on a managed cluster, as Ramen makes them."""

from __future__ import annotations

from ..interfaces import ObjectRef
from ..kinds import VRG

SHORT = {VRG: "vrg"}


def work_name(ref: ObjectRef) -> str:
    """Of the ManifestWork that deploys the object."""
    return _name(ref, "mw")


def view_name(ref: ObjectRef) -> str:
    """Of the ManagedClusterView that reads the object."""
    return _name(ref, "mcv")


def _name(ref: ObjectRef, suffix: str) -> str:
    return "-".join(part for part in (ref.name, ref.namespace, SHORT.get(ref.kind, ref.kind.lower()), suffix) if part)
