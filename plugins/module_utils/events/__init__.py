# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the event source is made of: it follows the hub, looks at orders, and asks for actions. It runs none itself."""
