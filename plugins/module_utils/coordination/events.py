# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The form of the events that coordination emits. Each has a `type`; events of a workload have its namespace and name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .documents import Content
from .state import State

Event = dict[str, Any]
Emit = Callable[[Event], None]


def state_fields(state: State) -> Content:
    return {"intent": state.intent, "decision": state.decision, "step": state.step}
