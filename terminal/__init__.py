"""The commands that are clients of the API in a terminal: ``ingot top`` and ``ingot explain``."""
