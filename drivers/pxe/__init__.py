"""Boot from the network with iPXE."""
