"""Networks of Neutron: the network interfaces ``flat`` and ``neutron``."""
