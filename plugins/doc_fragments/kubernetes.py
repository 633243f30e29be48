# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How to reach the hub: the options that every module of this collection shares, named as in kubernetes.core."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, or its content as a dictionary.
      - Several paths may be joined by colons. Default is E(KUBECONFIG), then C(~/.kube/config), then the pod that runs this.
      - May also be set by E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description: The context of the kubeconfig to use. May also be set by E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: Address of the API server, instead of a kubeconfig's. May also be set by E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: A bearer token. May also be set by E(K8S_AUTH_API_KEY).
    type: str
  username:
    description: A user name for basic authentication. May also be set by E(K8S_AUTH_USERNAME).
    type: str
  password:
    description: The password of O(username). May also be set by E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description: Path of a client certificate. May also be set by E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the key of O(client_cert). May also be set by E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description: Path of the authority that signed the API server's certificate. May also be set by E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether the API server's certificate is checked. May also be set by E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description: Address of a proxy to the API server. May also be set by E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description: Host suffixes, separated by commas, that are reached without O(proxy). May also be set by E(K8S_AUTH_NO_PROXY).
    type: str
  impersonate_user:
    description: Act as this user. May also be set by E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Act as a member of these groups. May also be set by E(K8S_AUTH_IMPERSONATE_GROUPS).
    type: list
    elements: str
requirements:
  - python >= 3.11
  - PyYAML
  - urllib3 >= 2
"""

    LOCK = r"""
options:
  lock:
    description:
      - The lock that the run holds, as a template is given it, or RV(openfleet.clusters.cluster_lock#module:lock).
      - Without one the task takes the lock of the cluster itself, which is that of its order, and gives it back at its end. It fails
        while a run of the playbooks, or another task, holds it.
    type: dict
    suboptions:
      namespace:
        description: Namespace of the order.
        type: str
        required: true
      order:
        description: Name of the order.
        type: str
        required: true
      holder:
        description: Who holds the lock.
        type: str
        required: true
      token:
        description: The number that goes with every write.
        type: int
        required: true
      duration:
        description: For how many seconds the lock lasts without being renewed.
        type: int
        required: true
      acquired:
        description: When the lock was taken.
        type: str
        required: true
      version:
        description: The version of the Lease as it was then.
        type: str
        required: true
"""

    CLUSTER = r"""
options:
  cluster_order:
    description:
      - The ClusterOrder whose cluster it is, as a template is given it.
      - A cluster without an order is named by O(name) and O(namespace).
    type: dict
  name:
    description: The name of a cluster that has no order.
    type: str
  namespace:
    description: The namespace on the hub that has the objects and secrets of a cluster without an order. Required with O(name).
    type: str
  provider:
    description:
      - Who makes and serves the cluster, V(hypershift) for example, or C(<namespace>.<collection>.<provider>) of another collection.
      - The cluster of an order stays with the provider that made it, and then this may be left out. Required with O(name).
    type: str
"""

    ORDERS = r"""
options:
  api_group:
    description: API group of the C(ClusterOrder) resource. C(osac.openshift.io) is the other group in use.
    type: str
    default: cloudkit.openshift.io
"""
