"""A rack: its machines, their BMCs and the control API, in one process."""

import importlib
import logging
import resource
from typing import Any, Protocol

from ingot.rack import bmc
from ingot.rack.config import RackConfig, machine_specs
from ingot.rack.control import ControlApi
from ingot.rack.http_server import HttpServer
from ingot.rack.loop import LoopThread, Site
from ingot.rack.machine import Machine
from ingot.rack.qemu import QemuMachine
from ingot.rack.simulated import SimulatedMachine

# Thousands of ports are opened at the start.
_MANY_S = 60.0
# Loaded by a rack that has such ports: it is large, and most racks have none.
_REDFISH = "ingot.rack.redfish.server"

LOG = logging.getLogger(__name__)

_KINDS: dict[str, type[Machine]] = {"simulated": SimulatedMachine, "qemu": QemuMachine}


class RedfishPorts(Protocol):
    """The ports of Redfish faces."""

    def __init__(self, config: RackConfig, machines: list[Machine]) -> None: ...
    async def open(self) -> None: ...
    def kill(self) -> None: ...
    def describe(self) -> dict[str, Any]: ...


class Rack:
    """A running rack, from ``start`` to ``stop``.

    pyghmi keeps its sockets in tables of the class: a process that uses pyghmi as a client must not hold a
    rack, but start one with ``ingot.rack.process.RackProcess``.
    """

    def __init__(self, config: RackConfig) -> None:
        self.config = config
        self.machines: dict[str, Machine] = {}
        self.control_url = ""
        self._site = Site(config)
        self._loop = LoopThread()
        self._control = HttpServer(ControlApi(self).handle, ControlApi.error_body)
        self._bmcs: list[bmc.RackBmc] = []
        self._redfish: RedfishPorts | None = None

    def start(self) -> None:
        """Put the machines up, powered off, and answer on every port.

        :raises OSError: when a port is taken; the text says which.
        """
        _raise_file_limit()
        self.config.state_dir.mkdir(parents=True, exist_ok=True)
        self._loop.start()
        for spec in machine_specs(self.config):
            machine = _KINDS[self.config.machine_kind](spec, self._site)
            self.machines[spec.name] = machine
            self._bmcs.append(self._bmc(machine))
        self._loop.call(self._listen)
        if self.config.redfish_port is not None or self.config.redfish_base_port is not None:
            ports: type[RedfishPorts] = importlib.import_module(_REDFISH).Ports
            self._redfish = self._loop.call(ports, self.config, list(self.machines.values()), timeout=_MANY_S)
            self._loop.run(self._redfish.open(), timeout=_MANY_S)
        port = self._loop.run(self._control.start("127.0.0.1", self.config.control_port))
        self.control_url = f"http://127.0.0.1:{port}"
        LOG.info("%d machines, control API on %s", len(self.machines), self.control_url)

    def _bmc(self, machine: Machine) -> bmc.RackBmc:
        base = self.config.bmc_base_port
        port = base + machine.spec.index if base else 0
        try:
            made = bmc.RackBmc(machine, self.config.address, port, self.config.username, self.config.password)
        except OSError as error:
            raise OSError(error.errno, f"BMC of {machine.name}, {self.config.address} UDP port {port}: "
                          f"{error.strerror}") from error  # fmt: skip
        machine.bmc_port = made.port
        machine.on_new_credentials = made.end_sessions
        return made

    def _listen(self) -> None:
        for one in self._bmcs:
            self._loop.loop.add_reader(one, one.receive)

    def stop(self) -> None:
        """Cut the power of every machine and close all ports; the state directory stays."""
        self._loop.call(self._power_down)
        self._loop.stop()
        self._site.close()

    def _power_down(self) -> None:
        self._control.kill()
        if self._redfish is not None:
            self._redfish.kill()
        for one in self._bmcs:
            self._loop.loop.remove_reader(one)
            one.close()
        for machine in self.machines.values():
            if machine.powered:
                machine.switch_off()

    def describe(self) -> dict[str, Any]:
        """Return what a user needs to enroll the machines; passwords are left out."""
        return {
            "control_url": self.control_url,
            "address": self.config.address,
            "username": self.config.username,
            "state_dir": str(self.config.state_dir),
            **(self._redfish.describe() if self._redfish else {}),
            "machines": [machine.identity() for machine in self.machines.values()],
        }


def _raise_file_limit() -> None:
    # A machine takes about six descriptors: BMC, Redfish, agent, their clients' connections and a disk.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
