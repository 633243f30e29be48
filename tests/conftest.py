"""Every test may use the sandbox: see its pytest plugin for the fixtures."""

pytest_plugins = ["ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin"]
