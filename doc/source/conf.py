"""Sphinx configuration of the guides."""

from importlib import metadata

project = "Ingot"
copyright = "the Ingot contributors, Apache License 2.0"
release = metadata.version("ingot")
version = release

extensions = ["reno.sphinxext", "sphinx.ext.graphviz"]  # graphviz: Debian's package has the program dot
graphviz_output_format = "svg"
root_doc = "index"
html_theme = "alabaster"
html_theme_options = {"description": "Bare-metal machines behind an API", "fixed_sidebar": True}
nitpicky = True
html_static_path = ["_static"]
html_css_files = ["tables.css"]
