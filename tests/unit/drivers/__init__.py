"""Tests of hardware types, interfaces and their parts."""
