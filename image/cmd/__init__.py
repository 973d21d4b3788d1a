"""The command ingot-image."""
