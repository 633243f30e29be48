# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The body of a module whose work an action plugin does: it declares the arguments and fails. Only tools run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .argument_specs import Spec


def main(spec: Spec, rules: Mapping[str, Any] | None = None) -> None:
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True, **(rules or {}))
    module.fail_json(msg="An action plugin does this on the controller: call it as a task of a playbook, or with `ansible -m`.")
