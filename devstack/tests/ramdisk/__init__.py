"""Tests of the builders of ramdisk and test image."""
