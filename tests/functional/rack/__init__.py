"""Functional tests of the virtual rack: ingot-rack as a process, real clients."""
