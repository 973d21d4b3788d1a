"""Builds agent ramdisks: Debian packages, a kernel, ironic-python-agent, and media from which firmware boots them."""
