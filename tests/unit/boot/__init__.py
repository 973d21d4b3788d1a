"""Tests of the boot services."""
