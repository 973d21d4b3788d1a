"""What the whole conductor stands on: locked tasks with their writes, the lease, and the logs of agents."""
