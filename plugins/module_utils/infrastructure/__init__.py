# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a site provides for clusters: settings, secrets, hosts, addresses, DNS records; access, storage and operators inside of them.

Imports templates, providers, lock, kube and common.
"""
