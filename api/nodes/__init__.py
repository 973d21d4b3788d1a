"""Nodes: what belongs to one, and the verbs that clients ask for."""
