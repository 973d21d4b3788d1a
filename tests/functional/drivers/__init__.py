"""Tests of drivers against the virtual rack: real BMCs, real agents' protocol."""
