"""What agents and Ingot say to each other: recorded from the real agent, compared with what the simulated one says."""
