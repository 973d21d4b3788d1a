"""Files of a ramdisk: its first process, what DHCP and buttons start, the agent's configuration."""
