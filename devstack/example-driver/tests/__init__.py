"""Tests of the driver, made with the kit that Ingot brings: ``pip install ingot[driver-kit]``."""
