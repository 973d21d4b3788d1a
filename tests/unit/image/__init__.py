"""Tests of the builder of agent ramdisks."""
