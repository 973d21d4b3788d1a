"""Functional tests: real databases, a real broker, the real processes."""
