"""Tests of ingot.rpcapi."""
