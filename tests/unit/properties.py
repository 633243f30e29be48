"""Tests of properties: a hundred random examples in `make test`, and OPENFLEET_SOAK times as many in each round of `make soak`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

EXAMPLES = 100
# Hypothesis needs the number before a test has the fixture `soak`.
FACTOR = int(os.environ.get("OPENFLEET_SOAK") or 1)


def for_any(*strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The test holds for any arguments that these strategies make."""
    # Without a deadline for one example: the machine may stall.
    patient = settings(max_examples=EXAMPLES * FACTOR, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return pytest.mark.soak(patient(given(*strategies)(test)))

    return decorate
