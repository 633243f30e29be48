# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Types, timestamps, the clock, text, argument specs and third-party imports that every package shares. Imports no other package."""
