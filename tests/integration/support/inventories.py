"""One Ansible process that reads inventories on request. Its start costs more than all of its answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

# Prints what each inventory file on its standard input has: hosts with their variables, groups with their hosts, and
# messages. Ansible prints each message once in a process, so the messages are taken before that.
READER = """
import json, sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.display import Display

messages = []
Display.warning = lambda self, msg, *args, **kwargs: messages.append(str(msg))
Display.error_as_warning = lambda self, msg, exception, *args, **kwargs: messages.append(f"{msg} {exception}")
init_plugin_loader()
for line in sys.stdin:
    file, cache = json.loads(line)
    messages.clear()
    try:
        inventory = InventoryManager(DataLoader(), [file], cache=cache)
        groups = {name: sorted(host.name for host in group.hosts) for name, group in inventory.groups.items() if group.hosts}
        answer = {"hosts": {host.name: host.get_vars() for host in inventory.get_hosts()}, "groups": groups}
    except Exception as error:
        messages.append(str(error))
        answer = {"hosts": {}, "groups": {}}
    print(json.dumps(answer | {"messages": " ".join(" ".join(messages).split())}), flush=True)
"""


class InventoryReader:
    """Reads fleet inventories as Ansible's commands do."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process, self._folder = process, folder

    def read(self, *, use_cache: bool = True, **config: Any) -> Object:
        """The hosts, groups and messages of an inventory file with this configuration."""
        file = self._folder / "fleet.yml"
        file.write_text(yaml.safe_dump({"plugin": "openfleet.clusters.fleet"} | config))
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(file), use_cache]) + "\n")
        self._process.stdin.flush()
        answer: Object = json.loads(self._process.stdout.readline())
        return answer


def environment(folder: Path) -> dict[str, str]:
    """The environment of Ansible's commands, without settings of the machine."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))}
    return inherited | {
        "HOME": str(folder),
        "ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"),
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "ANSIBLE_NOCOLOR": "1",
    }


@contextmanager
def inventory_reader(folder: Path) -> Iterator[InventoryReader]:
    command = [sys.executable, "-c", READER]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield InventoryReader(process, folder)
    finally:
        process.kill()
        process.communicate()
