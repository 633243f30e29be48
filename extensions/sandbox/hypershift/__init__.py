"""A stand-in for the HyperShift operator: it does to the objects what HyperShift does, without pods, nodes or images.

Each HostedCluster gets a real API server of its own, as processes of this machine; its Nodes are objects without machines.
"""
