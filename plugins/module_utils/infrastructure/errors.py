# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the settings of a site, as the parts of the infrastructure find it."""

from __future__ import annotations

from ..kube.errors import Invalid


class SiteMistake(Invalid):
    """The site has to correct a setting. No change of the order would help, so the order is retried."""

    retryable = True
