"""A ramdisk of ``ingot-image`` for servers finds all that a server has, and its ISO image boots with secure boot."""

import json
import pathlib
import shutil
import subprocess
from typing import Any

import testtools

from ingot.common.media import fat
from ingot.rack import ports
from tests import patience
from tests.functional.deployment import lab
from tests.gate.real_machine.bench import HOST, LONGEST_PAUSE_S, PLACE
from tests.gate.real_machine.inner_bmc import InnerBMC
from tests.gate.real_machine.server import CARDS, DISK_SIZE, DISKS, Server

PATIENCE_S = patience.seconds(600)
IMAGE = PLACE / "server"
BMC_ADDRESS, BMC_MAC = "192.0.2.77", "52:54:00:15:00:77"


class ServerTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = PLACE / "runs" / "server"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        bmc = self.useFixture(InnerBMC(self.directory, BMC_ADDRESS, BMC_MAC))
        self.server = self.useFixture(Server(self.directory, bmc.path))
        port = ports.tcp()
        self.url = f"http://{HOST}:{port}"
        self.user = lab.User(f"http://127.0.0.1:{port}")
        self.start_ingot(port)

    def start_ingot(self, port: int) -> None:
        config = self.directory / "ingot.conf"
        config.write_text(
            "[DEFAULT]\nauth_strategy = noauth\nenabled_hardware_types = manual-management\n"
            f"enabled_inspect_interfaces = agent\nenabled_power_interfaces = fake\nstate_path = {self.directory}\n"
            f"[api]\nhost_ip = 127.0.0.1\nport = {port}\npublic_endpoint = {self.url}\n"
            f"[service_catalog]\nendpoint_override = {self.url}\n"
            "[inspector]\nrequire_managed_boot = false\nhooks = $default_hooks,root-device\n"
        )
        ingot = lab.Process(["ingot", "--config-file", str(config)], self.directory / "ingot.log")
        self.addCleanup(ingot.stop)
        ingot.start()
        self.eventually(lambda: self.user.get("/v1/conductors")["conductors"], "Ingot serves")

    def eventually(self, check: Any, what: str) -> Any:
        return lab.eventually(check, what, PATIENCE_S, self.logs, LONGEST_PAUSE_S)

    def logs(self) -> str:
        """Return the ends of what Ingot and the machine have said."""
        logs = [self.directory / "ingot.log", self.server.console]
        return "\n---\n".join(log.read_text(errors="replace")[-4000:] for log in logs if log.exists())

    def test_what_an_inspection_finds(self) -> None:
        node = self.inspect()
        inventory = self.user.get(f"/v1/nodes/{node}/inventory")["inventory"]
        serials = {disk["serial"] for disk in inventory["disks"] if disk["size"] >= DISK_SIZE}  # not the stick
        self.assertEqual({f"{serial}-1" for serial in DISKS.values()}, serials)
        cards = {card["mac_address"]: card for card in inventory["interfaces"]}
        self.assertEqual({*CARDS.values()}, {*cards})
        self.assertEqual({True}, {bool(card["ipv4_address"]) for card in cards.values()})
        self.assertEqual((BMC_ADDRESS, BMC_MAC), (inventory["bmc_address"], inventory["bmc_mac"]))
        self.assertEqual("uefi", inventory["boot"]["current_boot_mode"])
        self.assertIn("Secure boot enabled", self.server.console.read_text(errors="replace"))

    def inspect(self) -> str:
        """Have the machine inspected by an agent that its operator boots; return the node's uuid."""
        body = {"driver": "manual-management", "name": "server", "inspect_interface": "agent"}
        node: str = self.user.post("/v1/nodes", body)["uuid"]
        self.user.post("/v1/ports", {"node_uuid": node, "address": CARDS["e1000e"]})
        self.reach(node, "manage", "manageable")
        self.user.provision(node, "inspect")
        self.eventually(lambda: self.user.node(node)["provision_state"] == "inspect wait", "it is waited for")
        callback = f"{self.url}/v1/continue_inspection"
        settings = f"ipa-api-url={self.url} ipa-inspection-callback-url={callback} ipa-inspection-collectors=default"
        stick = self.directory / "stick.img"
        stick.write_bytes(fat.build({"parameters.txt": settings.encode()}, "ir-vfd-dev"))
        self.server.start(IMAGE / "agent.iso", stick)
        self.reach(node, None, "manageable")
        return node

    def reach(self, node: str, verb: str | None, state: str) -> None:
        if verb:
            self.user.provision(node, verb)

        def has_arrived() -> bool:
            found = self.user.node(node)
            self.assertFalse(found["last_error"], found["last_error"])
            self.assertTrue(verb or self.server.is_on, "QEMU has ended, see qemu.log")
            return bool(found["provision_state"] == state)

        self.eventually(has_arrived, f"the node is {state}")

    def test_the_image_is_what_its_manifest_says(self) -> None:
        done = subprocess.run(["ingot-image", "verify", IMAGE], capture_output=True, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn(f"[deploy] deploy_kernel = file://{IMAGE}/vmlinuz", done.stdout)
        summed = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=IMAGE, check=False)
        self.assertEqual(0, summed.returncode)

    def test_the_drivers_of_servers_are_there(self) -> None:
        manifest = json.loads(pathlib.Path(IMAGE, "manifest.json").read_text())
        disks = {"ahci", "nvme", "mpt3sas", "mpi3mr", "megaraid_sas", "hpsa", "smartpqi", "aacraid", "mvsas", "pm80xx"}
        cards = {"e1000e", "igb", "ixgbe", "i40e", "ice", "bnxt_en", "bnx2x", "tg3", "mlx5_core", "qede", "sfc"}
        others = {"ipmi_si", "ipmi_devintf", "usb-storage", "uas", "virtio_net", "virtio_scsi", "raid1", "8021q"}
        self.assertEqual(set(), (disks | cards | others) - {*manifest["modules"]})
        firmware = {"intel/ice/ddp/ice.pkg", "tigon/tg3.bin", "cxgb4/t6fw.bin"}
        self.assertEqual(set(), firmware - {*manifest["firmware"]})
