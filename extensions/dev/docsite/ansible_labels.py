"""The labels of Ansible's own documentation that the generated reference links to, as an inventory file of intersphinx.

Downloading Ansible's inventory would need the network. A label that is missing here fails the build by its name.
"""

from __future__ import annotations

import zlib

CONFIGURATION = "reference_appendices/config.html"
LABELS = {
    "action_plugins": "plugins/action.html#action-plugins",
    "ansible_configuration_settings": f"{CONFIGURATION}#ansible-configuration-settings",
    "common_return_values": "reference_appendices/common_return_values.html#common-return-values",
}
VARIABLES = ("ANSIBLE_CACHE_PLUGIN", "ANSIBLE_CACHE_PLUGIN_CONNECTION", "ANSIBLE_CACHE_PLUGIN_PREFIX", "ANSIBLE_CACHE_PLUGIN_TIMEOUT")
HEADER = "# Sphinx inventory version 2\n# Project: Ansible\n# Version:\n# The remainder of this file is compressed using zlib.\n"


def inventory() -> bytes:
    lines = [f"{label} std:label -1 {address} -\n" for label, address in LABELS.items()]
    lines += [f"{name} std:envvar -1 {CONFIGURATION}#envvar-$ -\n" for name in VARIABLES]
    return HEADER.encode() + zlib.compress("".join(lines).encode())
