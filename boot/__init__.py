"""Boot services: DHCP and TFTP for machines, by a dnsmasq of Ingot's own or by an operator's DHCP server."""
