# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state machine of disaster recovery: one pure function, `step.step`, and its parts by subject. It sends no request. Imports common."""
