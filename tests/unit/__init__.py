"""Unit tests: fast, no services, no network beyond loopback. Those of ``devstack/tests`` belong to them."""

import pathlib
import unittest

HERE = pathlib.Path(__file__).parent
BESIDE_DEVSTACK = HERE.parents[1] / "devstack" / "tests"


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    """Find all unit tests; a test path of stestr is one directory, and they are in two."""
    for directory in (HERE, BESIDE_DEVSTACK):
        tests.addTests(loader.discover(str(directory), pattern or "test*.py"))
    return tests
