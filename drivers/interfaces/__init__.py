"""The contracts of the kinds of hardware interface: one module each, and their common base."""
