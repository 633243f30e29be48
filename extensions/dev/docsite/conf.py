"""Sphinx's settings for the HTML pages. Sphinx runs this file by its path; the build is in __main__."""

project = "openfleet.clusters"
copyright = "The openfleet.clusters contributors"  # noqa: A001 - the name is Sphinx's
html_title = project

extensions = [
    "sphinx.ext.intersphinx",
    "sphinx_antsibull_ext",
    "myst_parser",
    "ansible_collections.openfleet.clusters.extensions.dev.docsite.mermaid",
    "ansible_collections.openfleet.clusters.extensions.dev.docsite.reference",
]
include_patterns = ["*.rst", "docsite/*.rst", "*.md", "docs/*.md", "docs/examples/*/README.md", "roles/*/README.md"]
nitpicky = True

# Links lead to the site of Ansible; which labels it has is in the local file, so that a build needs no network.
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/projects/ansible/latest/", "../ansible.inv")}

# Headings get the anchors that GitHub makes, and its fences of diagrams become pictures.
myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]

# furo comes with its fonts and scripts; a page loads nothing from another site.
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_use_index = False
pygments_style = "ansible"
highlight_language = "YAML+Jinja"
