"""Ports that must be known before they are bound."""

import pathlib
import socket
import subprocess
import sys

import testtools

from ingot.rack import ports

_ASK = "from ingot.rack import ports; ports.FIRST = {first}; print(ports.tcp())"


def first_of_outgoing() -> int:
    return int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


class PortsTest(testtools.TestCase):
    def test_a_row_of_ports_is_free(self) -> None:
        base = ports.udp(3)
        for port in range(base, base + 3):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.bind((ports.LOOPBACK, port))

    def test_no_outgoing_connection_takes_one(self) -> None:
        self.assertTrue(ports.FIRST <= ports.tcp() < first_of_outgoing())

    def test_no_request_gets_one_twice(self) -> None:
        first = first_of_outgoing() - 3  # two ports are left, and one of them is leased here
        self.addCleanup(setattr, ports, "FIRST", ports.FIRST)
        ports.FIRST = first
        here = ports.tcp()
        ask = [sys.executable, "-c", _ASK.format(first=first)]
        there = subprocess.run(ask, capture_output=True, text=True, check=True)
        self.assertNotEqual(here, int(there.stdout))
