# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The attributes of modules. A module states only its support of check mode and diff mode."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Predicts the result without changing anything.
  diff_mode:
    description: Returns the differences when C(--diff) is set.
  action:
    support: full
    description: Runs as an action plugin on the controller, without a connection to a host.
"""

    # Of modules that only read.
    INFO = r"""
attributes:
  check_mode:
    support: full
    details: The module changes nothing.
  diff_mode:
    support: N/A
"""

    # Of modules that change a cluster through its provider.
    PROVIDER = r"""
attributes:
  check_mode:
    support: full
    details: The API server validates the objects with a dry run.
  diff_mode:
    support: full
    details: Shows every object. Of a Secret it shows the keys and which of them change, never the values.
"""
