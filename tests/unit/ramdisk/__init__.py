"""Tests of the builders of ramdisk and test image. They are scripts beside the product, found through devstack/."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[3] / "devstack"))
