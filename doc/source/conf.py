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
    "sphinx.ext.graphviz",
]  # graphviz: Debian's package has the program dot
graphviz_output_format = "svg"
root_doc = "index"
html_theme = "furo"
html_title = f"Ingot {release}"
nitpicky = True
html_static_path = ["_static"]
html_css_files = ["tables.css"]
