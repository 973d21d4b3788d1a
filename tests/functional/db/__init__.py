"""Tests of ingot.db on every database that is configured."""
