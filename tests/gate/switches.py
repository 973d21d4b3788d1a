"""A switch: Open vSwitch from Debian, in user space, with an SSH server on loopback by which it is changed."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import fixtures

from ingot.rack import ports
from tests import patience
from tests.gate import environments

REQUIREMENTS = ("networking-generic-switch>=10.0",)
NAME, MAC, BRIDGE = "leaf", "0a:00:00:00:00:02", "rack"
_PATIENCE_S = patience.seconds(60)
_SILENCE_S = patience.seconds(2)
"""After which no more frames arrive."""

_SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {place}/host_key
PidFile none
StrictModes no
AuthorizedKeysFile {place}/login.pub
PasswordAuthentication no
UsePAM no
ForceCommand {place}/bin/shell
"""

_SHELL = """#!/bin/sh
exec /usr/bin/env -i PATH={place}/bin:/usr/bin:/bin OVS_RUNDIR={place} PS1='leaf# ' /bin/bash --norc --noprofile
"""

# An Ethernet frame to all, of the type for experiments.
_SEND = """
import select, socket, sys
patience, name, *others = sys.argv[1:]
listeners = {}
for other in others:
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
    one.bind((other, 0x88B5))
    listeners[one] = other
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind((name, 0))
sender.send(b"\\xff" * 6 + b"\\x02" + b"\\0" * 5 + b"\\x88\\xb5" + b"\\0" * 46)
heard = set()
while ready := select.select([one for one in listeners if one not in heard], [], [], float(patience))[0]:
    heard.update(ready)
print(*(listeners[one] for one in listeners if one in heard))
"""

_PROGRAM = """#!/bin/sh
echo "$*" >> {place}/commands
exec /usr/bin/ovs-vsctl --timeout=20 "$@"
"""


def prepare() -> pathlib.Path:
    """Return the programs of an environment with what Ingot changes switches with; make it if it is not there."""
    return environments.cached("switch", *REQUIREMENTS)


class OpenVSwitch(fixtures.Fixture):
    """
    Its datapath is in a network of its own, where ``ip`` and Python can be at its ports.

    :param names: of the ports for machines.
    :param vlans: of ports that are always on one VLAN each.
    :param cards: cards of the test's own network that are ports, too, with their VLANs; its datapath is there then.
    """

    def __init__(self, names: Sequence[str], vlans: Sequence[int] = (), cards: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self._cards = cards or {}
        self._names = names
        self._vlans = vlans
        self._server: subprocess.Popen[bytes] | None = None

    def _setUp(self) -> None:
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log = self.place / "commands"
        self.port = ports.tcp()
        self._socket = f"unix:{self.place}/db.sock"
        self._environment = {**os.environ, "OVS_RUNDIR": str(self.place), "OVS_LOGDIR": str(self.place)}
        database = f"{self.place}/conf.db"
        environments.run("ovsdb-tool", "create", database, "/usr/share/openvswitch/vswitch.ovsschema")
        self._start("ovsdb", "ovsdb-server", database, f"--remote=p{self._socket}")
        self._wait(lambda: (self.place / "db.sock").exists(), "the database of Open vSwitch")
        self.run("--no-wait", "init")
        apart = () if self._cards else ("unshare", "--net")
        self._datapath = self._start("vswitchd", *apart, "ovs-vswitchd", self._socket)
        self.run("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev")
        for name in self._names:
            self._add_port(name)
        for card, vlan in self._cards.items():
            self.run("add-port", BRIDGE, card, f"tag={vlan}")
        for vlan in self._vlans:
            self._add_port(f"vlan{vlan}", f"tag={vlan}")
        self._prepare_login()
        self.start_server()
        monitor = ("ovsdb-client", "--format=json", "monitor", self._socket, "Open_vSwitch", "Port", "name,tag")
        self._start("monitor", *monitor)
        self._wait(lambda: "initial" in self._read("monitor"), "the history of tags")

    def _add_port(self, name: str, *settings: str) -> None:
        self.run("add-port", BRIDGE, name, *settings, "--", "set", "interface", name, "type=internal")
        self._inside("ip", "link", "set", name, "up")

    def _inside(self, *command: str) -> str:
        """Run a command in the network of the datapath; return what it says."""
        return environments.run("nsenter", f"--net=/proc/{self._datapath}/ns/net", *command)

    def hears(self, name: str) -> list[int]:
        """Send a frame from a port; return the VLANs on which it arrives."""
        listeners = [f"vlan{vlan}" for vlan in self._vlans]
        said = self._inside(sys.executable, "-c", _SEND, str(_SILENCE_S), name, *listeners)
        return [int(one.removeprefix("vlan")) for one in said.split()]

    def _start(self, name: str, *command: str) -> int:
        with (self.place / f"{name}.log").open("wb") as log:
            process = subprocess.Popen([*environments.TIED, *command], stdout=log, stderr=log, env=self._environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process.pid

    def _read(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text(errors="replace")

    def _wait(self, check: Any, what: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not check():
            if time.monotonic() > until:
                raise AssertionError(f"no {what}: {self._read('vswitchd')[-3000:]}")
            time.sleep(0.1)

    def _prepare_login(self) -> None:
        for name in ("host_key", "login"):
            environments.run("ssh-keygen", "-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", self.place / name)
        (self.place / "bin").mkdir()
        for name, text in (("ovs-vsctl", _PROGRAM), ("shell", _SHELL)):
            program = self.place / "bin" / name
            program.write_text(text.format(place=self.place))
            program.chmod(0o755)
        (self.place / "sshd_config").write_text(_SERVER.format(port=self.port, place=self.place))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)

    def start_server(self) -> None:
        """Let the switch be reached."""
        command = [*environments.TIED, "/usr/sbin/sshd", "-D", "-f", str(self.place / "sshd_config")]
        with (self.place / "sshd.log").open("ab") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(self.stop_server)

    def stop_server(self) -> None:
        """Let the switch not be reached any more."""
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            self._server.wait()
            self._server = None

    def run(self, *words: str) -> str:
        """Run ovs-vsctl; return what it says."""
        return environments.run("ovs-vsctl", "--timeout=20", *words, env=self._environment).strip()

    def tag(self, name: str) -> int | None:
        """Return the VLAN of a port."""
        said = self.run("get", "port", name, "tag")
        return None if said == "[]" else int(said)

    def tags(self, name: str) -> list[int | None]:
        """Return the VLANs that a port has had, one after the other."""
        found: list[int | None] = []
        rows: dict[str, str] = {}
        for line in self._read("monitor").splitlines():
            for row, action, known, tag in json.loads(line)["data"] if line.startswith("{") else ():
                rows.setdefault(row, known)
                if rows[row] == name and action in ("initial", "new", "insert"):
                    found.append(tag if isinstance(tag, int) else None)
        return [tag for number, tag in enumerate(found) if number == 0 or tag != found[number - 1]]

    def options(self) -> dict[str, dict[str, Any]]:
        """Return how Ingot uses it."""
        return {
            f"genericswitch:{NAME}": {
                "device_type": "netmiko_ovs_linux",
                "ip": "127.0.0.1",
                "port": self.port,
                "username": "root",
                "use_keys": "true",
                "key_file": self.place / "login",
                "ngs_mac_address": MAC,
                "ngs_ssh_connect_timeout": 20,
                "ngs_ssh_connect_interval": 1,
                "ngs_save_configuration": "false",
            },
        }
