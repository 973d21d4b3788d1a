"""The virtual rack (``ingot-rack``): machines with real BMCs and simulated insides, in one process."""
