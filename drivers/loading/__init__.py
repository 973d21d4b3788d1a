"""Loads what is enabled of installed packages and composes drivers from it; imports no implementation."""
