# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Loads what the tasks of every run need, before their processes exist: Ansible forks each off its own process, where this is imported."""

from __future__ import annotations

import ssl

from ansible.plugins.loader import filter_loader, test_loader
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import DEFAULT, ProviderFactory


def preload() -> None:
    """The provider of most orders, OpenSSL, and the filters and tests of Jinja, which each process would load for its first template."""
    ProviderFactory.get(DEFAULT)
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the first one loads the algorithms
    for loader in (filter_loader, test_loader):
        list(loader.all())
