"""Measures Ingot beside real Ironic and beside its own last release; README.md says how."""
