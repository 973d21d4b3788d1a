"""Implementations of hardware interfaces, registered as entry points ingot.hardware.interfaces.<kind>."""
