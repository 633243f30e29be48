"""The process that renews the locks of a run: it ends at the run's deadline, also while the run hangs."""

from __future__ import annotations

import os

from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import Renewer
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunProcess

TIMEOUT_SECONDS = 30


def test_the_renewer_of_a_run_that_hangs_ends_at_the_deadline_of_the_run() -> None:
    renewer = Renewer({}, RunProcess(os.getpid()), seconds=0.1)  # of a process that does not end; its pipe stays open, too
    try:
        assert renewer.process.wait(TIMEOUT_SECONDS) == 0
    finally:
        renewer.__exit__()
