"""IPMI 2.0: the hardware type ipmi, its interfaces, and sessions with BMCs."""
