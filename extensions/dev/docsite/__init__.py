"""The HTML pages of the collection: the Markdown guides and the generated reference in one Sphinx site. Not part of a release."""
