"""A machine room: a network that only Ingot serves, QEMU machines on it, and an operator of Ingot."""

import contextlib
import functools
import http.server
import json
import pathlib
import select
import shutil
import socket
import threading
import time
from typing import Any

from ingot.rack.process import RackProcess
from tests import patience
from tests.functional.deployment import lab
from tests.gate import environments, switches
from tests.gate.real_machine.bench import LONGEST_PAUSE_S, MACHINE, PATIENT, PLACE, Bench

ADDRESS = "10.77.0.1"
"""This computer's, on the bridge that devstack/machine-room.sh has made."""

BRIDGE, TAPS = "machines", "machine{machine}-{nic}"

DIRECTORY = pathlib.Path("/var/lib/ingot-machine-room")
"""Of ingot-boot: the user of its dnsmasq cannot read every checkout."""

MACHINES = DIRECTORY / "machines"
"""The file by which dnsmasq knows machines."""

PASSWORD = "a password"
UEFI, BIOS, HTTP, SECURE = range(4)
"""The machines, by number."""

PORT = "port3"
"""Of the switch, where the last machine's cable ends."""

NEW, CLEANING, PROVISIONING, TENANT = 50, 100, 200, 300
"""VLANs: the first is that of machines that are not accepted yet."""

_OPERATORS = (NEW, CLEANING, PROVISIONING)
_SILENCE_S = patience.seconds(5)
_LISTENS_TO_ALL = 0x0003
"""Protocol of sockets that get every frame (ETH_P_ALL)."""

_FIRMWARE = ("uefi", "bmc", "uefi-http", "uefi-secure")
_LOADERS = {
    "bootx64.efi": "shim/shimx64.efi.signed",
    "grubx64.efi": "grub/x86_64-efi-signed/grubnetx64.efi.signed",
}
"""By their names in the directory that devstack/ramdisk makes, where Debian has them below /usr/lib."""

_PORT, _FILES_PORT = 6385, 8000


class _Files(http.server.SimpleHTTPRequestHandler):
    def copyfile(self, source: Any, outputfile: Any) -> None:
        with contextlib.suppress(ConnectionError):  # firmware asks first how large a file is, and goes
            super().copyfile(source, outputfile)

    def log_message(self, format: str, *args: Any) -> None:
        """Drop the log of requests, to keep the test's output readable."""


def _subnet(vlan: int) -> str:
    """Return what addresses begin with on a VLAN."""
    return f"10.77.{vlan}"


def _listen(name: str) -> socket.socket:
    """Return a socket with every frame that arrives at a network card."""
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_LISTENS_TO_ALL))
    listener.bind((name, _LISTENS_TO_ALL))
    return listener


class Room(Bench):
    """Everything in the room. The bench's machine is the one that is looked at."""

    def __init__(self) -> None:
        super().__init__("room")

    def _setUp(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self._began = time.monotonic()
        self.image = json.loads((PLACE / "image" / "manifest.json").read_text())
        self.addCleanup(shutil.rmtree, DIRECTORY, ignore_errors=True)
        self._serve_files()
        self._lay_out_loaders()
        self._lay_out_vlans()
        self.rack = RackProcess(
            self.directory / "rack",
            machines=len(_FIRMWARE),
            machine=[{"firmware": firmware} for firmware in _FIRMWARE],
            disks=1,
            disk_size="5G",
            bmc_base_port=0,
            password=PASSWORD,
            taps=TAPS,
            **MACHINE,
        )
        self.addCleanup(self.rack.stop)
        self.rack.start()
        self.look_at(UEFI)
        self.user = lab.User(f"http://{ADDRESS}:{_PORT}")
        self._start_ingot()
        config = self.directory / "ingot.conf"
        self._boot = lab.Process(["ingot-boot", "--config-file", str(config)], self.directory / "boot.log")
        self.addCleanup(self._boot.stop)
        self.serve_boot()

    def serve_boot(self, *settings: str) -> None:
        """Start ingot-boot, or start it anew.

        :param settings: lines for the section ``[boot_services]``, beside those of the room.
        """
        self._boot.stop()
        (self.directory / "ingot.conf").write_text("\n".join([self._configuration(), *settings, ""]))
        starts = self.boot_log().count("started")
        self._boot.start()
        self.eventually(lambda: self.boot_log().count("started") > starts, "dnsmasq runs")

    def look_at(self, number: int) -> None:
        """Select the machine whose console and log the bench reads."""
        self.machine = self.rack.machines[number]
        self.name = self.machine["name"]

    def _serve_files(self) -> None:
        handler = functools.partial(_Files, directory=str(PLACE))
        server = http.server.ThreadingHTTPServer((ADDRESS, _FILES_PORT), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def _lay_out_loaders(self) -> None:
        self._loaders = self.directory / "loaders"
        for name, path in _LOADERS.items():
            place = self._loaders / path
            place.parent.mkdir(parents=True)
            shutil.copyfile(PLACE / "netboot" / name, place)

    def _lay_out_vlans(self) -> None:
        """Have this computer on each VLAN; the machine at the switch is on that of new ones."""
        self.switch = self.useFixture(switches.OpenVSwitch((), (*_OPERATORS, TENANT), cards={PORT: NEW}))
        for vlan in _OPERATORS:
            environments.run("ip", "address", "add", f"{_subnet(vlan)}.1/24", "dev", f"vlan{vlan}")

    def hear(self, mac: str) -> set[int]:
        """Wait for frames of a machine; return the VLANs on which there are some."""
        with contextlib.ExitStack() as ends:
            listeners = {ends.enter_context(_listen(f"vlan{vlan}")): vlan for vlan in (*_OPERATORS, TENANT)}
            heard: set[int] = set()

            def has_heard() -> bool:
                ready, _, _ = select.select(listeners, [], [], LONGEST_PAUSE_S)
                heard.update(listeners[one] for one in ready if one.recv(2048)[6:12].hex(":") == mac)
                return bool(heard)

            self.eventually(has_heard, f"{mac} is heard")
            until = time.monotonic() + _SILENCE_S
            while time.monotonic() < until:
                has_heard()
            return heard

    def _configuration(self) -> str:
        options = {**self.switch.options(), "switch": self._switch_options()}
        groups = (f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in one.items()) for group, one in options.items())
        return "\n".join([*groups, self._own_configuration()])

    def _switch_options(self) -> dict[str, Any]:
        return {
            "python": switches.prepare() / "python",
            "cleaning_vlan": CLEANING,
            "provisioning_vlan": PROVISIONING,
            "tenant_networks": f"web:{TENANT}",
        }

    def _own_configuration(self) -> str:
        ranges = {f"vlan{vlan}": _subnet(vlan) for vlan in _OPERATORS}
        return f"""[DEFAULT]
host = room
enabled_network_interfaces = noop,switch
default_network_interface = noop
auth_strategy = noauth
state_path = {self.directory}
my_ip = {ADDRESS}
debug = true
[api]
host_ip = {ADDRESS}
port = {_PORT}
ramdisk_heartbeat_timeout = 40
machine_networks = 10.77.0.0/16
[conductor]
force_power_state_during_sync = false
[deploy]
deploy_kernel = {self.url("deploy/vmlinuz")}
deploy_ramdisk = {self.url("deploy/initrd.img")}
erase_devices_priority = 0
erase_devices_metadata_priority = 10
fast_track = true
signed_loader_path = {self._loaders}
[agent]
command_timeout = {PATIENT["command_timeout"]}
connect_timeout = {PATIENT["connect_timeout"]}
[inspector]
power_off = false
[pxe]
kernel_append_params = console=ttyS0,115200 no_timer_check mitigations=off
[auto_discovery]
enabled = true
driver = ipmi
[boot_services]
interfaces = {",".join([BRIDGE, *ranges])}
dhcp_ranges = {",".join(f"{name}={net}.50-{net}.99/24" for name, net in [("room", "10.77.0"), *ranges.items()])}
routers = {",".join(f"{name}:{net}.1" for name, net in ranges.items())}
refresh_interval = 1
directory = {DIRECTORY}
"""

    def url(self, path: str) -> str:
        return f"http://{ADDRESS}:{_FILES_PORT}/{path}"

    def boot_log(self) -> str:
        """Return what ingot-boot has logged, with all that its dnsmasq says."""
        log = self.directory / "boot.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def switch_on(self, number: int) -> str:
        """Push the button of a machine; return its MAC address."""
        machine = self.rack.machines[number]
        self.look_at(number)
        self.say(f"{machine['name']}: on")
        self.rack.control.power(machine["name"], "on")
        mac: str = machine["macs"][0]
        return mac

    def switch_off(self, number: int) -> None:
        """Push the button of a machine for a long time."""
        self.rack.control.power(self.rack.machines[number]["name"], "off")

    def switch_off_by_ingot(self, uuid: str) -> None:
        """Have Ingot switch off a machine; wait until it has."""
        self.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "power off"})
        self.eventually(lambda: self._is_off(self.user.node(uuid)), "the machine is off")

    def _is_off(self, node: dict[str, Any]) -> bool:
        return node["power_state"] == "power off" and node["reservation"] is None

    def wait_for_agent(self, uuid: str, part: str) -> None:
        """Wait for an agent that has this in its address."""

        def has_called() -> bool:
            return part in (self.user.node(uuid)["driver_internal_info"].get("agent_url") or "")

        self.eventually(has_called, f"an agent has called that has {part} in its address")
        self.say(f"the agent called from {part}")

    def console_of(self, number: int) -> str:
        """Return all that a machine has said on its serial console."""
        console = pathlib.Path(self.rack.control.machine(self.rack.machines[number]["name"])["console"])
        return console.read_text(errors="replace") if console.exists() else ""

    def wait_for_entry(self, mac: str) -> dict[str, Any]:
        """Wait until the inbox has a machine, and return the entry."""

        def find() -> dict[str, Any] | None:
            entries = self.user.get("/ingot/v1/inbox")["inbox"]
            return next((entry for entry in entries if mac in entry["addresses"]), None)

        entry: dict[str, Any] = self.eventually(find, f"the inbox has {mac}")
        self.say(f"in the inbox: {entry['boot_mode']} {mac}, from {entry['client_address']}")
        return entry

    def bmc_of(self, number: int) -> dict[str, Any]:
        """Return driver_info with the way to a machine's BMC."""
        machine = self.rack.machines[number]
        return {
            "ipmi_address": machine["bmc_address"],
            "ipmi_port": machine["bmc_port"],
            "ipmi_username": "admin",
            "ipmi_password": PASSWORD,
        }
