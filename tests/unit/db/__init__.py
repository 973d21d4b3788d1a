"""Tests of ingot.db on SQLite."""
