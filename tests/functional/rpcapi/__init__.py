"""Tests of the bus, with a real broker."""
