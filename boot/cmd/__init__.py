"""The command ingot-boot."""
