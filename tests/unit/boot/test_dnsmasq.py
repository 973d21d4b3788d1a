"""The files of dnsmasq, and lines for other servers."""

import json
from typing import Any

import testtools

from ingot.boot import dnsmasq, handover, settings
from ingot.common.boot_loaders import CLIENTS, FILES
from tests.unit.boot.test_settings import configuration


def read(**options: Any) -> settings.Settings:
    return settings.read(configuration(**options))


class RenderTest(testtools.TestCase):
    def test_it_serves_no_names_and_listens_where_it_is_said(self) -> None:
        lines = dnsmasq.render(read()).splitlines()
        for line in ("port=0", "interface=eth1", "dhcp-range=set:rack1,10.1.0.50,10.1.0.99,255.255.255.0,3600"):
            self.assertIn(line, lines)
        self.assertIn("dhcp-ignore=tag:!enrolled", lines)
        self.assertIn("dhcp-option=tag:rack1,option:router", lines)  # and not dnsmasq itself
        self.assertEqual(len(lines), len(set(lines)))

    def test_where_machines_are_discovered_unknown_ones_are_answered(self) -> None:
        self.assertNotIn("dhcp-ignore=", dnsmasq.render(read(auto_discovery__enabled=True)))

    def test_beside_another_server_it_gives_no_addresses(self) -> None:
        text = dnsmasq.render(read(dhcp_ranges=["10.2.0.0/24"]))
        self.assertIn("dhcp-range=set:net1,10.2.0.0,proxy,255.255.255.0", text)
        self.assertIn("pxe-service=tag:bios,tag:!ipxe,0,Ingot,undionly.kpxe", text)
        self.assertNotIn("authoritative", text)

    def test_each_client_has_exactly_one_loader(self) -> None:
        for chain in ("ipxe", "grub"):
            lines = [line for line in dnsmasq.list_boot(read(loader=chain)) if line.startswith("dhcp-boot=")]
            for client in CLIENTS:
                for own in ({client.tag}, {client.tag, "signed"}, {client.tag, "ipxe"}):
                    met = [line for line in lines if self.meets(line, own)]
                    self.assertEqual(1, len(met), (chain, own, met))

    @staticmethod
    def meets(line: str, tags: set[str]) -> bool:
        """Return whether dnsmasq would take a line for a client with these tags."""
        named = [word.removeprefix("tag:") for word in line.partition("=")[2].split(",") if word.startswith("tag:")]
        return all((name.removeprefix("!") in tags) != name.startswith("!") for name in named)

    def test_nodes_with_the_boot_interface_pxe_start_what_is_signed(self) -> None:
        machines = [dnsmasq.Machine("52:54:00:00:00:01", False), dnsmasq.Machine("52:54:00:00:00:02", True)]
        self.assertEqual(
            "52:54:00:00:00:01,set:enrolled\n52:54:00:00:00:02,set:enrolled,set:signed\n",
            dnsmasq.render_machines(machines),
        )
        self.assertIn("dhcp-boot=tag:efi-x86-64,tag:!ipxe,tag:signed,bootx64.efi", dnsmasq.render(read()))

    def test_loaders_that_are_served_are_known(self) -> None:
        self.assertEqual(["undionly.kpxe", "snponly.efi"], dnsmasq.list_needed("ipxe"))
        self.assertEqual(["undionly.kpxe", "bootx64.efi", "grubx64.efi"], dnsmasq.list_needed("grub"))
        for chain in ("ipxe", "grub"):
            every = {*dnsmasq.list_needed(chain), *dnsmasq.list_others(chain)}
            self.assertEqual(set(), every - set(FILES))
            self.assertLessEqual({"bootx64.efi", "grubx64.efi", "bootaa64.efi", "grubaa64.efi"}, every)


class HandoverTest(testtools.TestCase):
    def test_lines_for_dnsmasq_leave_addresses_to_the_operator(self) -> None:
        text = handover.FORMS["dnsmasq"](read())
        self.assertIn("dhcp-boot=tag:ipxe,http://10.1.0.1:6385/boot.ipxe", text)
        self.assertNotIn("dhcp-range", text)
        self.assertNotIn("interface=", text)

    def test_kea_gets_classes_of_which_a_client_is_in_one(self) -> None:
        text = handover.FORMS["kea"](read())
        classes = json.loads("".join(line for line in text.splitlines() if not line.startswith("//")))["client-classes"]
        files = {one["name"]: one["boot-file-name"] for one in classes}
        self.assertEqual("http://10.1.0.1:6385/boot.ipxe", files["ingot-ipxe"])
        self.assertEqual("snponly.efi", files["ingot-efi-x86-64"])
        self.assertTrue(all("not member('ingot-ipxe')" in one["test"] for one in classes[1:]))

    def test_dhcpd_gets_one_condition(self) -> None:
        text = handover.FORMS["dhcpd"](read(loader="grub"))
        self.assertIn('if option user-class = "iPXE" {\n  filename "http://10.1.0.1:6385/boot.ipxe";', text)
        self.assertIn('} elsif option arch = 00:07 or option arch = 00:09 {\n  filename "bootx64.efi";', text)
        self.assertIn("option arch = 00:10", text)
        self.assertIn("option arch = 00:0b", text)
        self.assertEqual(text.count("{"), text.count("}"))
