# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that the modules of disaster recovery share: those of the API server and those of the bucket, which have one name in common."""

from __future__ import annotations

import yaml
from ansible_collections.openfleet.clusters.plugins.doc_fragments.kubernetes import ModuleDocFragment as Kubernetes
from ansible_collections.openfleet.clusters.plugins.doc_fragments.s3 import ModuleDocFragment as Store

OWN = yaml.safe_load(
    r"""
options:
  validate_certs:
    description: Whether to verify the certificates of the API server and of the store. The default is true.
    type: bool
    aliases: [verify_ssl]
  site_namespace:
    description:
      - The namespace on this cluster with the C(ClusterRegistry) of the peers, the Secrets of their kubeconfigs, and
        the ConfigMap C(dr-settings), in which C(dr_mode) chooses how peers are reached.
    type: str
    default: openfleet-system
"""
)
_kubernetes, _s3 = yaml.safe_load(Kubernetes.DOCUMENTATION), yaml.safe_load(Store.DOCUMENTATION)


class ModuleDocFragment:
    DOCUMENTATION: str


# Outside of the class: ansible-test takes what is assigned in it for literal text.
ModuleDocFragment.DOCUMENTATION = yaml.safe_dump(
    {
        "options": _kubernetes["options"] | _s3["options"] | OWN["options"],
        "requirements": list(dict.fromkeys([*_kubernetes.get("requirements", []), *_s3["requirements"]])),
    }
)
