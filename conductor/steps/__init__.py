"""The step engine: what a flow is, which steps it gets and in which order, and how it is driven."""
