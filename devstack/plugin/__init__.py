"""The parts of DevStack's plugin: shell functions by subject, and what enrolls machines."""
