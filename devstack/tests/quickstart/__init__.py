"""Tests of the quickstart's parts."""
