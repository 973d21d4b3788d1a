"""What an inspection makes of the inventory of a machine: hooks, and the operator's rules."""
