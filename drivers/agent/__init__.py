"""The conversation with the agent in a machine's ramdisk."""
