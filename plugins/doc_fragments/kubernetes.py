# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that modules for the hub share: the connection, named as in kubernetes.core, orders, clusters and locks."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path to a kubeconfig, or its content as a dictionary. Separate several paths by colons.
      - Default is E(KUBECONFIG), then C(~/.kube/config), then the service account of the pod.
      - Can also be set with E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description: The context of the kubeconfig. Can also be set with E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: URL of the API server. Replaces that of the kubeconfig. Can also be set with E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: Bearer token. Can also be set with E(K8S_AUTH_API_KEY).
    type: str
  username:
    description: User name for basic authentication. Can also be set with E(K8S_AUTH_USERNAME).
    type: str
  password:
    description: Password of O(username). Can also be set with E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description: Path to a client certificate. Can also be set with E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path to the key of O(client_cert). Can also be set with E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description: Path to the CA certificate of the API server. Can also be set with E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether to verify the certificate of the API server. Can also be set with E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description: URL of an HTTP proxy for the connection. Can also be set with E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description: Comma-separated host suffixes that bypass O(proxy). Can also be set with E(K8S_AUTH_NO_PROXY).
    type: str
  impersonate_user:
    description: User to impersonate. Can also be set with E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Groups to impersonate. Can also be set with E(K8S_AUTH_IMPERSONATE_GROUPS).
    type: list
    elements: str
requirements:
  - python >= 3.11
  - PyYAML
  - urllib3 >= 2
"""

    ORDERS = r"""
options:
  api_group:
    description: API group of the C(ClusterOrder) resource. The other group in use is C(osac.openshift.io).
    type: str
    default: cloudkit.openshift.io
  controller:
    description:
      - The controller of ClusterOrders. With V(external) another controller owns the phase of an order, its finalizer,
        and the working namespace with its service account, whose name the status of the order or its label tells.
        Conditions of this collection then have the prefix C(openfleet.clusters/).
      - Set the same value for the event source, the playbooks and all modules.
    type: str
    choices: [self, external]
    default: self
  site_namespace:
    description:
      - The namespace of the site on the hub, which holds the locks of all orders. Tenants must have no permission in
        it.
      - Set the same value for the event source, the playbooks and all modules.
    type: str
    default: openfleet-system
  allowed_addresses:
    description:
      - The addresses at which the site reaches clusters by kubeconfigs of tenants, as the provider C(standalone) does.
        By default there are none.
      - An entry is an address, a network in CIDR notation, or the name of a host. C(*.example.com) is every name below
        C(example.com).
      - Loopback, link-local, private and reserved addresses need an entry that is such an address or network itself.
        The name of a host, or C(0.0.0.0/0), does not allow them.
      - Set the same value for the event source, the playbooks and all modules.
    type: list
    elements: str
    default: []
"""

    # Of modules that select orders.
    SELECTION = r"""
options:
  name:
    description: Name of one order. Requires O(namespace).
    type: str
  namespace:
    description: Namespace of the order.
    type: str
  orders:
    description: Several orders, each as C(<namespace>/<name>) or as a dictionary with C(name) and C(namespace).
    type: list
    elements: raw
    default: []
"""

    # Of modules that select orders also by an event.
    EVENT = r"""
options: {}
notes:
  - If the arguments name no order, the module uses the orders of the event that started the run. Rules engines pass the
    event in the variable C(ansible_eda). An event of this collection names orders in C(orders) or C(order). The event
    of a webhook has the ClusterOrder in C(payload), of which the module uses only name, namespace and uid.
  - Do not pass the event as an argument. Ansible would render the content of a payload as a template.
"""

    CLUSTER = r"""
options:
  cluster_order:
    description:
      - The ClusterOrder of the cluster. The playbooks of this collection set it for the tasks of templates and hooks.
      - Not used if O(name) is set.
    type: dict
  name:
    description: Name of a cluster without an order. Requires O(namespace) and O(provider).
    type: str
  namespace:
    description: Namespace of the objects and Secrets of a cluster without an order, on the hub.
    type: str
  provider:
    description:
      - Provider of the cluster, for example V(hypershift), or C(<namespace>.<collection>.<provider>) of another
        collection.
      - Optional for the cluster of an order that has been created. The provider of a cluster cannot be changed.
    type: str
"""

    LOCK = r"""
options:
  lock:
    description:
      - The lock that the run holds, for example RV(openfleet.clusters.cluster_lock#module:lock). The playbooks of this
        collection set it for the tasks of templates and hooks.
      - Without a lock of this cluster, the task acquires the lock itself and releases it at its end. It fails if
        another run holds the lock.
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
        description: Identity of the holder.
        type: str
        required: true
      token:
        description: Fencing token of every write.
        type: int
        required: true
      duration:
        description: Seconds after which the lock expires without renewal.
        type: int
        required: true
      site:
        description: Namespace of the site, which holds the lock.
        type: str
        required: true
      acquired:
        description: Time at which the lock was acquired.
        type: str
        required: true
      version:
        description: Resource version of the Lease at that time.
        type: str
        required: true
"""
