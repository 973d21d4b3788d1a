"""Unit tests of the virtual rack."""
