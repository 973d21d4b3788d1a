"""Redfish: the hardware type redfish, its interfaces, and sessions with BMCs."""
