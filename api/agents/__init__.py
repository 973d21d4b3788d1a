"""Requests of booting machines and their agents, without credentials."""
