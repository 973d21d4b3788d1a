"""The agent in a machine's ramdisk: its HTTP API, its session, its steps, and the interfaces that work through it."""
