"""Tests of what stands beside them: rack, quickstart. ``stestr run`` has them among the unit tests.

Quickstart and ramdisk are scripts beside the product, found through devstack/.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1]))
