"""Sphinx configuration of the guides."""

import pathlib
import sys
from importlib import metadata

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "extensions"))

project = "Ingot"
copyright = "the Ingot contributors, Apache License 2.0"
release = metadata.version("ingot")
version = release

extensions = [
    "api_reference",
    "from_program",
    "reno.sphinxext",
    "sphinx.ext.autodoc",
    "sphinx.ext.graphviz",
]  # graphviz: Debian's package has the program dot
graphviz_output_format = "svg"
root_doc = "index"
html_theme = "furo"
html_title = f"Ingot {release}"
nitpicky = True
# Docstrings name what they mean as readers of the code see it, also what has no page.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_typehints = "none"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
