"""What GitOps needs in the sandbox: Flux on clusters without nodes, a git server, a chart repository, an OCI registry."""
