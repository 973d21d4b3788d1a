"""Whole deployments: Ingot as processes, a rack, real protocols between them."""
