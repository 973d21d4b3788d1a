"""A site that moves from real Ironic to Ingot and back: its processes, what users see of both, where that differs."""
