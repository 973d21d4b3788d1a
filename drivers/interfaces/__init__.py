"""What a driver author writes against: the interfaces' contracts, the task, steps, results, and what does nothing."""
