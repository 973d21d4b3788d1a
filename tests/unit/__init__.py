"""Unit tests: fast, no services, no network beyond loopback."""
