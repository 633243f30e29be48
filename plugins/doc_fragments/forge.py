# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The options of modules that use a repository on a forge."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  forge:
    description: The kind of forge that has the repository.
    type: str
    choices: [gitea, forgejo, github, gitlab]
    required: true
  forge_url:
    description:
      - The address of the forge, for example V(https://git.example.com).
      - V(https://github.com) means the public GitHub.
    type: str
    required: true
  forge_token:
    description: A token that may read the repository, and for proposals write files and pull requests in it.
    type: str
    required: true
  forge_ca_cert:
    description: A file with certificates in PEM that are trusted beside those of the system.
    type: path
  forge_validate_certs:
    description: Whether to verify the certificate of the forge.
    type: bool
    default: true
  repository:
    description: The repository, as C(owner/name); for GitLab the path of the project.
    type: str
    required: true
  base_branch:
    description: The branch that Flux applies.
    type: str
    default: main
  path:
    description: The folder of the orders in the repository. The file of an order is C(<path>/<namespace>/<name>.yaml).
    type: str
    default: orders
"""
