"""Ironic's names for Ingot's commands."""
