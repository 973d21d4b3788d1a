"""Tests of what DevStack's plugin does in Python."""
