"""TODO: say what this folder holds."""
