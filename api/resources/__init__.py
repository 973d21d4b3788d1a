"""The resources beside nodes: ports, allocations, runbooks, conductors ..."""
