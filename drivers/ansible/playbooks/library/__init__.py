"""Modules that the playbooks run on machines; nothing of Ingot is there to be imported."""
