"""What [boot_services] may say."""

import ipaddress
import pathlib
from typing import Any

import testtools

from ingot.boot import settings
from ingot.common import errors
from ingot.common.conf import opts


def configuration(**options: Any) -> Any:
    """Return options; those of [boot_services] by their names, others as group__name."""
    conf = opts.load([], prog="ingot-tests", files=[])
    conf.set_override("endpoint_override", "http://10.1.0.1:6385", group="service_catalog")
    usual = {"interfaces": ["eth1"], "dhcp_ranges": ["rack1=10.1.0.50-10.1.0.99/24"], "directory": "/var/lib/x"}
    for name, value in {**usual, **options}.items():
        group, _, option = name.rpartition("__")
        conf.set_override(option, value, group=group or "boot_services")
    return conf


class SettingsTest(testtools.TestCase):
    def read(self, **options: Any) -> settings.Settings:
        return settings.read(configuration(**options))

    def refuse(self, **options: Any) -> list[str]:
        return self.assertRaises(errors.ConfigurationErrors, self.read, **options).messages

    def test_ranges_have_names_addresses_and_a_router(self) -> None:
        found = self.read(
            dhcp_ranges=["rack1=10.1.0.50-10.1.0.99/24", "10.2.0.0/16"],
            routers={"rack1": "10.1.0.1"},
            dns_servers={"rack1": "10.1.0.2"},
        )
        rack, proxy = found.networks
        self.assertEqual(("rack1", "10.1.0.0/24"), (rack.name, str(rack.network)))
        self.assertEqual(("10.1.0.50", "10.1.0.99"), tuple(map(str, rack.span or ())))
        self.assertEqual((ipaddress.IPv4Address("10.1.0.1"), ipaddress.IPv4Address("10.1.0.2")), rack[3:])
        self.assertEqual(("net2", None, None), (proxy.name, proxy.span, proxy.router))
        self.assertEqual(pathlib.Path("/var/lib/x/tftp"), found.tftp_root)
        self.assertEqual("http://10.1.0.1:6385/boot.ipxe", found.script)

    def test_each_bad_value_is_named_in_one_message(self) -> None:
        bad = ["10.1.0.50-10.1.0.99", "10.1.0.9-10.1.0.5/24", "10.1.0.5-10.2.0.5/24", "a b=10.1.0.0/24", "10.1.0.7/24"]
        messages = self.refuse(dhcp_ranges=[*bad, "x=10.3.0.0/24", "x=10.4.0.0/24"], interfaces=["eth 1"])
        for value in (*bad, "eth 1"):
            self.assertTrue(any(repr(value) in message for message in messages), value)
        self.assertTrue(any("x stands for two networks" in message for message in messages))

    def test_a_router_belongs_to_a_network_that_there_is(self) -> None:
        messages = self.refuse(routers={"rack2": "10.1.0.1"}, dns_servers={"rack1": "dns.example"})
        self.assertIn("has no network 'rack2'; there are: rack1", " ".join(messages))
        self.assertIn("'dns.example' is no IPv4 address", " ".join(messages))

    def test_nothing_may_add_lines_to_the_file_of_dnsmasq(self) -> None:
        self.refuse(domain="rack\ndhcp-script=/bin/sh")
        self.refuse(interfaces=["eth1\ndhcp-script=/bin/sh"])
        self.refuse(dhcp_ranges=["a\nb=10.1.0.0/24"])

    def test_a_server_of_its_own_needs_interfaces_and_ranges(self) -> None:
        messages = self.refuse(interfaces=[], dhcp_ranges=[])
        self.assertEqual(2, len(messages))
        conf = configuration(interfaces=[], dhcp_ranges=[])
        self.assertEqual((), settings.read(conf, needs_networks=False).networks)

    def test_who_is_answered(self) -> None:
        for value, discovers, answers in (
            *(("auto", False, False), ("auto", True, True)),
            *(("answer", False, True), ("ignore", True, False)),
        ):
            found = self.read(unknown_machines=value, auto_discovery__enabled=discovers)
            self.assertEqual(answers, found.answers_unknown, (value, discovers))
