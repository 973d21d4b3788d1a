"""Tests of ingot-boot with a real dnsmasq, on networks of their own."""
