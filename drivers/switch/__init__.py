"""The network interface ``switch``: it moves ports of switches between VLANs, without Neutron."""
