"""Tests of Ingot: unit (no services), functional (real services), gate (the product as installed)."""
