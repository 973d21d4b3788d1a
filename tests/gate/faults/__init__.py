"""Faults on purpose: everything that may die does, while machines are deployed and cleaned. See README.md."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[3] / "devstack"))
