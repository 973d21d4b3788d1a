"""The environments in which the commands of pages are typed; ``doc/README.md`` has a table of them."""

import abc
import hashlib
import os
import pathlib
import sys
from typing import Any

import fixtures
import requests

from ingot.rack import ports
from ingot.rack.process import RackProcess
from tests import patience
from tests.functional.deployment import lab
from tests.gate import client, debian, environments, test_metalsmith
from tests.gate.pages.shell import Shell
from tests.gate.real_machine.bench import MACHINE

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SITE_SHELL = pathlib.Path(__file__).with_name("site.bash")
_IRONIC_SITE = pathlib.Path(__file__).with_name("ironic.bash")
_IRONIC = environments.ROOT / "benchmarks" / "ironic.txt"
_OPTIONS: dict[str, dict[str, Any]] = {
    "DEFAULT": {
        "enabled_hardware_types": "ipmi,redfish,fake-hardware",
        "enabled_boot_interfaces": "ipxe,redfish-virtual-media,fake",
        "enabled_deploy_interfaces": "direct,ramdisk,fake",
        "enabled_power_interfaces": "ipmitool,redfish,fake",
        "enabled_management_interfaces": "ipmitool,redfish,noop,fake",
        "enabled_vendor_interfaces": "ipmitool,redfish,no-vendor,fake",
        "enabled_raid_interfaces": "no-raid,agent,redfish,fake",
        "enabled_rescue_interfaces": "no-rescue,agent,fake",
        "enabled_inspect_interfaces": "no-inspect,agent,redfish,fake",
        "enabled_bios_interfaces": "no-bios,redfish,fake",
        "default_inspect_interface": "",
        "use_stderr": "false",
    },
    "auto_discovery": {"enabled": "true"},
}
_MACHINES = 3


class Environment(fixtures.Fixture, abc.ABC):
    """A place to type in; :meth:`open` once for each page."""

    @abc.abstractmethod
    def open(self, directory: pathlib.Path) -> Shell:
        """Return a shell, not started yet.

        :param directory: empty, of this page alone.
        """

    def forget(self) -> None:
        """Remove what a page has made outside its directory."""


class Site(Environment):
    """A running Ingot, a rack of three machines and the client of its users. Nodes go with the page that made them."""

    def _setUp(self) -> None:
        options = {group: {k: v for k, v in values.items() if v != ""} for group, values in _OPTIONS.items()}
        self._metrics = ports.tcp()
        options["metrics"] = {"api_port": self._metrics}
        rack = {"redfish_base_port": 0, "redfish_port": 0}
        self._lab = self.useFixture(lab.Lab(machines=_MACHINES, rack=rack, options=options))
        self._clients = [
            self.useFixture(client.warm_programs()).directory,
            client.programs(),
            environments.cached("metalsmith", *test_metalsmith.REQUIREMENTS),
        ]

    def open(self, directory: pathlib.Path) -> Shell:
        home = directory / "home"
        (home / ".ingot").mkdir(parents=True)
        (config,) = (path for path in self._lab.directory.glob("*.conf") if path.stem == self._lab.names[0])
        (home / ".ingot" / "ingot.conf").write_text(config.read_text())
        return Shell(directory, self._variables(home), start=("env", "--chdir", str(home)), first=f". {_SITE_SHELL}")

    def _variables(self, home: pathlib.Path) -> dict[str, str]:
        machines: dict[str, str] = {}
        for number, machine in enumerate(self._lab.rack.machines):
            machines |= {
                f"IPMI_PORT_{number}": str(machine["bmc_port"]),
                f"MAC_{number}": machine["macs"][0],
                f"REDFISH_ADDRESS_{number}": machine["redfish"]["address"],
                f"REDFISH_SYSTEM_{number}": machine["redfish"]["system"],
                f"MACHINE_{number}": machine["name"],
            }
        return {
            **machines,
            "API": self._lab.url,
            "EXAMPLE_DRIVER": str(environments.ROOT / "devstack" / "example-driver"),
            "HOME": str(home),
            "IMAGE_SHA256": self._lab.checksum,
            "IMAGE_URL": f"{self._lab.files.url}/image.raw",
            "LC_ALL": "C.UTF-8",
            "METRICS": f"127.0.0.1:{self._metrics}",
            "NO_PROXY": "*",
            "OS_AUTH_TYPE": "none",
            "OS_ENDPOINT": self._lab.url,
            "PACKAGING": str(environments.ROOT / "packaging"),
            "PATH": ":".join(map(str, (pathlib.Path(sys.executable).parent, *self._clients, _PATH))),
            "RACK": self._lab.rack.description["control_url"],
            "REDFISH_CA": self._lab.rack.description["redfish_ca_file"],
        }

    def forget(self) -> None:
        ask = requests.Session()
        ask.trust_env = False
        ask.headers["X-OpenStack-Ironic-API-Version"] = "latest"
        for machine in self._lab.rack.machines:
            self._lab.rack.control.clear_faults(machine["name"])
        for kind in ("allocations", "deploy_templates", "runbooks", "inspection_rules"):
            for one in ask.get(f"{self._lab.url}/v1/{kind}").json()[kind]:
                ask.delete(f"{self._lab.url}/v1/{kind}/{one['uuid']}").raise_for_status()
        for node in ask.get(f"{self._lab.url}/v1/nodes").json()["nodes"]:
            self._lab.eventually(lambda node=node: self._delete(ask, node["uuid"]), f"{node['uuid']} is deleted")

    def _delete(self, ask: requests.Session, uuid: str) -> bool:
        url = f"{self._lab.url}/v1/nodes/{uuid}"
        ask.put(f"{url}/maintenance", json={"reason": "the page has ended"})
        return ask.delete(url).status_code in (204, 404)


class Laptop(Environment):
    """An empty directory, a Python, and Ingot's wheel."""

    def open(self, directory: pathlib.Path) -> Shell:
        home = directory / "home"
        home.mkdir()
        wheel = environments.wheel()
        (home / wheel.name).symlink_to(wheel)
        variables = {
            "HOME": str(home),
            "FILES_PORT": str(ports.tcp()),
            "OS_API__PORT": str(ports.tcp()),
            "PIP_COMPILE": "0",  # few of the modules are imported: each is compiled when it is
            "PATH": f"{self._python(directory)}:{_PATH}",
            "LC_ALL": "C.UTF-8",
            "NO_PROXY": "*",
        }
        return Shell(directory, variables, start=("env", "--chdir", str(home)))

    def _python(self, directory: pathlib.Path) -> pathlib.Path:
        """Return a directory that has the Python of the tests as ``python3``."""
        programs = directory / "python"
        programs.mkdir()
        (programs / "python3").symlink_to(pathlib.Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
        return programs


class Systemd(Environment):
    """A Debian of its own that has booted, with systemd and a network without neighbors: a new one for each page."""

    def _setUp(self) -> None:
        self._servers: list[debian.Debian] = []

    def open(self, directory: pathlib.Path) -> Shell:
        server = debian.Debian()
        server.setUp()
        self._servers.append(server)
        server.offer(environments.wheel())
        server.copy(debian.download([client.REQUIREMENTS[0]], "client").iterdir(), debian.WHEELS)
        self.furnish(server)
        place = server.root / "var" / "tmp" / "typed"
        place.mkdir()
        return Shell(place, os.environ, start=server.enter(), seen_as="/var/tmp/typed")

    def furnish(self, server: debian.Debian) -> None:
        """Put what there is beside an empty Debian."""

    def forget(self) -> None:
        while self._servers:
            self._servers.pop().cleanUp()


class Physical(Systemd):
    """The same with a card ``eth1``, and on its network a machine of QEMU that boots what answers it.

    Its BMC is at 10.30.0.7. What the reader would fetch lies in ``/mnt``: an image, and a smaller agent
    than that for servers, which this machine boots sooner.
    """

    def furnish(self, server: debian.Debian) -> None:
        for command in _CABLES:
            environments.run(*server.enter_network(), *command.split())
        server.offer_agent()
        built = environments.ROOT / ".gate" / "real-machine"
        server.copy([built / "deploy" / name for name in ("vmlinuz", "initrd.img")], "/mnt/agent")
        server.copy([built / "image" / "image.raw"], "/mnt")
        rack = RackProcess(
            server.root / "mnt" / "rack",
            start=server.enter_network(),
            machines=1,
            machine=[{"firmware": "uefi"}],
            disks=1,
            disk_size="5G",
            address="10.30.0.7",
            bmc_base_port=623,
            taps="machine{machine}-{nic}",
            **MACHINE,
        )
        rack.start()
        self._racks.append(rack)

    def _setUp(self) -> None:
        super()._setUp()
        self._racks: list[RackProcess] = []

    def forget(self) -> None:
        while self._racks:
            self._racks.pop().stop()
        super().forget()


_CABLES = (
    "ip link add switch up type bridge",
    "ip link add eth1 type veth peer name cable",
    "ip link set cable master switch up",
    "ip tuntap add machine0-0 mode tap",
    "ip link set machine0-0 master switch up",
    "ip address add 10.30.0.2/24 dev lo",
    "ip address add 10.30.0.7/24 dev lo",
)


class Ironic(Systemd):
    """The same with real Ironic, which has three nodes, and with Ingot installed; ``ironic.bash`` makes both."""

    def furnish(self, server: debian.Debian) -> None:
        text = _IRONIC.read_text()
        required = [line for line in text.splitlines() if line and not line.startswith("#")]
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        server.copy(debian.download(required, f"ironic-{digest}").iterdir(), "/mnt/ironic")
        server.copy([_IRONIC, _IRONIC_SITE], "/mnt/ironic")
        server.run("bash", f"/mnt/ironic/{_IRONIC_SITE.name}", timeout=patience.seconds(300))


ENVIRONMENTS: dict[str, type[Environment]] = {
    "site": Site,
    "laptop": Laptop,
    "systemd": Systemd,
    "physical": Physical,
    "ironic": Ironic,
}
"""By the names that pages use. Commands of ``elsewhere`` are not typed: the comment says why."""

MOST_UNTYPED = 5
"""How many sections of all pages may say that they cannot be typed here."""

PAGE_LIMIT_S = patience.seconds(180)
