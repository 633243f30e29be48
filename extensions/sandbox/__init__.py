"""A whole hub on one machine, for the demo and the tests: real Kubernetes processes and a stand-in for HyperShift's pods."""
