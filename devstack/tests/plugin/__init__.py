"""Tests of DevStack's plugin that need no services."""
