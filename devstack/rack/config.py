"""The rack's settings: their defaults, where they come from (file, flags) and what is allowed in them.

A file holds the settings of ``RackConfig``, ``[[machine]]`` what the first, second, ... machine has of its own, and
``[[steps]]`` in-band steps that all agents offer beside the usual ones::

    machines = 3
    boot_url = "http://{host}:6385/boot/ipxe/{mac}"

    [[machine]]
    name = "storage"
    disk_sizes = ["8G", "8G", "100G"]
    disk_kinds = ["nvme", "ata:frozen", "ata"]

    [[steps]]
    step = "burn_in"
    interface = "deploy"
    priority = 95
    duration = 20.0
    abortable = true
    kinds = ["clean"]
"""

import json
import re
import tomllib
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from ingot.rack.vendors import VENDORS

MAX_MACHINES = 4000
LOADERS = ("ipxe", "grub", "pxelinux", "petitboot")
MACHINE_KINDS = ("simulated", "qemu")
FIRMWARES = ("bmc", "uefi", "uefi-http", "uefi-secure")
STEP_KINDS = ("clean", "deploy", "service")
DISK_KINDS = ("ata", "nvme")
DISK_STATES = ("normal", "unsupported", "frozen", "failing", "read-only")
STEP_INTERFACES = ("bios", "deploy", "firmware", "management", "power", "raid", "vendor")

_LIMITS = {
    "machines": (1, MAX_MACHINES),
    "nics": (1, 16),
    "disks": (1, 16),
    "memory": (1, 2**26),
    "cpus": (1, 64),
}
_CHOICES: dict[str, Collection[str]] = {
    "machine_kind": MACHINE_KINDS,
    "boot_loader": LOADERS,
    "redfish_vendor": VENDORS,
}

_SIZE = re.compile(r"^(\d+)([KMGT]?)(?:i?B)?$", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NAMESPACE = uuid.UUID("6f2c1d0e-7c5b-4b8e-9a55-0d9a4c1f7b11")


class ConfigError(ValueError):
    """A setting is unknown or has a value that cannot work."""


def _check_choice(name: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise ConfigError(f"{name}: {value!r} is not one of {', '.join(choices)}")


def parse_size(value: str | int) -> int:
    """Return a size in bytes for a number of bytes or a text such as ``8G`` or ``512M`` (powers of 1024)."""
    match = _SIZE.match(str(value).strip())
    if not match:
        raise ConfigError(f"size {value!r} is not a number of bytes or a text such as 512M or 8G")
    return int(match[1]) * _UNITS[match[2].upper()]


@dataclass(frozen=True)
class StepConfig:
    """An in-band step that the simulated agents offer beside those of the real agent.

    :param duration: seconds the step runs.
    :param fail: when given, the step ends in an error with this text.
    :param result: what the step reports when it has ended well.
    """

    step: str
    interface: str = "deploy"
    priority: int = 0
    kinds: tuple[str, ...] = STEP_KINDS
    reboot_requested: bool = False
    abortable: bool = False
    argsinfo: Mapping[str, Any] | None = None
    duration: float = 0.0
    fail: str | None = None
    result: Any = None

    def __post_init__(self) -> None:
        if self.interface not in STEP_INTERFACES:
            raise ConfigError(f"steps: {self.step}: interface {self.interface!r} is not one of {STEP_INTERFACES}")
        object.__setattr__(self, "kinds", tuple(self.kinds))
        if not set(self.kinds) <= set(STEP_KINDS):
            raise ConfigError(f"steps: {self.step}: kinds {self.kinds} must be from {STEP_KINDS}")


@dataclass(frozen=True)
class MachineOverride:
    """What one machine has that differs from the rack's defaults; None means: the default.

    :param firmware: of a QEMU machine: ``bmc``, UEFI or BIOS as its BMC was ordered, and BIOS without an order; or
        always ``uefi``, ``uefi-http``, which boots from the network by HTTP only, or ``uefi-secure``, with secure boot.
    """

    name: str | None = None
    uuid: str | None = None
    memory: int | None = None
    macs: tuple[str, ...] | None = None
    disk_sizes: tuple[str | int, ...] | None = None
    disk_kinds: tuple[str, ...] | None = None
    boot_delay: float | None = None
    redfish_vendor: str | None = None
    firmware: str | None = None

    def __post_init__(self) -> None:
        if self.redfish_vendor is not None:
            _check_choice("redfish_vendor", self.redfish_vendor, VENDORS)
        if self.firmware is not None:
            _check_choice("firmware", self.firmware, FIRMWARES)


@dataclass(frozen=True)
class RackConfig:
    """Settings of a rack. Times are seconds, ``memory`` is MiB, ports of 0 mean: any free one.

    :param machine_kind: what the machines are: simulated, or real ones but for the metal (QEMU).
    :param boot_url: where a machine finds what its loader reads; ``{mac}`` is its MAC as aa-bb-cc-dd-ee-ff,
        ``{mac_colon}`` as aa:bb:cc:dd:ee:ff, ``{uuid}`` its system UUID, ``{host}`` the address by which it reaches
        this computer (127.0.0.1; for QEMU machines 10.0.2.2).
    :param boot_loader: the loader of a simulated machine, one of ``LOADERS``; those of QEMU are real.
    :param tftp_root: directory that the networks of QEMU machines serve by TFTP; ``boot_url`` is a file in it then,
        which UEFI starts without iPXE.
    :param taps: network devices of this computer that are the other ends of the cards of QEMU machines, whose networks
        are what they lead to: ``{machine}`` and ``{nic}`` are numbers. None: each card has a private network.
    :param cpus: processors of a QEMU machine.
    :param record_traffic: whether the beginning of each packet of a QEMU machine is kept: by boot and network card, in
        files ``traffic-1-0.pcap``, ... in its directory.
    :param forwarded_ports: further TCP ports of the only machine, a QEMU one, besides its agent's: each is reached at
        ``address``, under the same number.
    :param disk_kinds: ``ata`` or ``nvme`` for a machine's first, second, ... disk; the last one is for all others. What
        its secure erase does can follow after a colon: ``unsupported``, ``frozen`` or ``failing``; or the disk is
        ``read-only``.
    :param boot_retry: pause before the firmware of a simulated machine that finds nothing in the network looks again;
        0: it never does, and the machine hangs.
    :param agent_settle: longest pause between the end of a command and the heartbeat that reports it.
    :param heartbeat_max: upper limit of the pause between two heartbeats (a real agent waits 0.3 to 0.6 of
        the service's heartbeat_timeout).
    :param retry_first: first pause after a refused lookup or heartbeat; doubles up to ``retry_max``.
    :param lookup_timeout: an agent whose machine is unknown gives up after this long.
    :param ca_file: certificates that agents trust for an https service, and BMCs for images.
    :param redfish_port: TCP port of the Redfish face that all machines share; None: there is none.
    :param redfish_base_port: TCP port of the first machine's own Redfish face, the next is the second's; None: there
        are none.
    :param redfish_tls: whether Redfish is spoken over TLS; the certificate to trust is in the rack's description.
    :param redfish_vendor: whose habits the Redfish faces have, one of ``vendors.VENDORS``.
    :param redfish_task_time: how long a task lasts.
    :param bmc_restart_time: how long a BMC that was reset does not answer.
    """

    machines: int = 3
    machine_kind: str = "simulated"
    address: str = "127.0.0.1"
    bmc_base_port: int = 6230
    username: str = "admin"
    password: str = field(default="password", repr=False)
    boot_url: str = "http://{host}:6385/boot/ipxe/{mac}"
    boot_loader: str = "ipxe"
    tftp_root: Path | None = None
    taps: str | None = None
    state_dir: Path = Path("rack-state")
    control_port: int = 6229
    name_prefix: str = "machine-"
    mac_prefix: str = "52:54:00"
    nics: int = 1
    disks: int = 2
    disk_size: int = 8 * 2**30
    disk_kinds: tuple[str, ...] = ("ata",)
    memory: int = 4096
    cpus: int = 2
    record_traffic: bool = False
    forwarded_ports: tuple[int, ...] = ()
    boot_delay: float = 0.5
    boot_retry: float = 0.0
    os_boot_delay: float = 0.5
    shutdown_delay: float = 0.5
    power_off_delay: float = 0.5
    tls: bool = True
    agent_base_port: int = 0
    agent_version: str = "13.0.0"
    agent_start_delay: float = 0.2
    agent_settle: float = 0.2
    heartbeat_max: float = 10.0
    retry_first: float = 0.5
    retry_max: float = 5.0
    lookup_timeout: float = 600.0
    ca_file: str | None = None
    redfish_port: int | None = None
    redfish_base_port: int | None = None
    redfish_tls: bool = True
    redfish_vendor: str = "generic"
    redfish_task_time: float = 1.0
    bmc_restart_time: float = 1.0
    steps: tuple[StepConfig, ...] = ()
    machine: tuple[MachineOverride, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "state_dir", Path(self.state_dir).absolute())
        object.__setattr__(self, "tftp_root", self.tftp_root and Path(self.tftp_root).absolute())
        object.__setattr__(self, "disk_size", parse_size(self.disk_size))
        for name, (low, high) in _LIMITS.items():
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name}: {getattr(self, name)} is not between {low} and {high}")
        for name, choices in _CHOICES.items():
            _check_choice(name, getattr(self, name), choices)
        if len(self.username.encode()) > 16 or len(self.password.encode()) > 20:
            raise ConfigError("username, password: IPMI 2.0 allows at most 16 and 20 bytes")
        if self.forwarded_ports and (self.machines, self.machine_kind) != (1, "qemu"):
            raise ConfigError(f"forwarded_ports: {list(self.forwarded_ports)} can be those of one QEMU machine only")
        if len(self.machine) > self.machines:
            raise ConfigError(f"machine: {len(self.machine)} entries, but there are {self.machines} machines")


@dataclass(frozen=True)
class DiskSpec:
    """A disk as the machine sees it; ``size`` in bytes, ``kind`` one of DISK_KINDS, ``state`` one of DISK_STATES."""

    name: str
    size: int
    serial: str
    wwn: str
    kind: str = "ata"
    state: str = "normal"


@dataclass(frozen=True)
class MachineSpec:
    """One machine of the rack, with every default filled in."""

    index: int
    name: str
    uuid: uuid.UUID
    memory: int
    cpus: int
    macs: tuple[str, ...]
    disks: tuple[DiskSpec, ...]
    boot_delay: float
    redfish_vendor: str
    firmware: str = "bmc"


def script_url(template: str, spec: MachineSpec, mac: str, host: str) -> str:
    """Return where a network card of a machine finds what its loader reads; see ``RackConfig.boot_url``."""
    values = {"mac": mac.replace(":", "-"), "mac_colon": mac, "uuid": str(spec.uuid), "host": host}
    return re.sub(r"\{(mac|mac_colon|uuid|host)\}", lambda match: values[match[1]], template)


def machine_specs(config: RackConfig) -> list[MachineSpec]:
    """Return the machines; names, UUIDs, MACs and serials depend on the index, so restarts keep them."""
    overrides = config.machine + (MachineOverride(),) * (config.machines - len(config.machine))
    specs = [_machine_spec(config, index, override) for index, override in enumerate(overrides)]
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise ConfigError("machine: two machines have the same name")
    return specs


def _machine_spec(config: RackConfig, index: int, override: MachineOverride) -> MachineSpec:
    name = override.name or f"{config.name_prefix}{index}"
    system_id = uuid.UUID(override.uuid) if override.uuid else uuid.uuid5(_NAMESPACE, config.mac_prefix + name)
    macs = override.macs or tuple(
        f"{config.mac_prefix}:{index >> 8:02x}:{index & 0xFF:02x}:{nic:02x}" for nic in range(config.nics)
    )
    sizes = override.disk_sizes or (config.disk_size,) * config.disks
    kinds = tuple(override.disk_kinds or config.disk_kinds)
    kinds += kinds[-1:] * (len(sizes) - len(kinds))
    return MachineSpec(
        index=index,
        name=name,
        uuid=system_id,
        memory=override.memory or config.memory,
        cpus=config.cpus,
        macs=tuple(mac.lower() for mac in macs),
        disks=tuple(
            _disk_spec(index, number, parse_size(size), kind)
            for number, (size, kind) in enumerate(zip(sizes, kinds, strict=False))
        ),
        boot_delay=config.boot_delay if override.boot_delay is None else override.boot_delay,
        redfish_vendor=override.redfish_vendor or config.redfish_vendor,
        firmware=override.firmware or FIRMWARES[0],
    )


def _disk_spec(machine: int, number: int, size: int, described: str) -> DiskSpec:
    kind, _, state = described.partition(":")
    if kind not in DISK_KINDS or (state or "normal") not in DISK_STATES:
        raise ConfigError(
            f"disk_kinds: {described!r} is not one of {', '.join(DISK_KINDS)}, "
            f"with one of {', '.join(DISK_STATES)} after a colon"
        )
    return DiskSpec(
        name=f"/dev/nvme{number}n1" if kind == "nvme" else f"/dev/sd{chr(ord('a') + number)}",
        size=size // 512 * 512,
        serial=f"RACK{machine:04d}D{number:02d}",
        wwn=f"0x5000c500{machine:06x}{number:02x}",
        kind=kind,
        state=state or "normal",
    )


def load(path: str | None, flags: Mapping[str, Any]) -> RackConfig:
    """Return the settings of a TOML or JSON file with the command line's flags on top.

    :raises ConfigError: for a file that cannot be read, an unknown setting or a bad value.
    """
    settings = _read(Path(path)) if path else {}
    settings.update(flags)
    settings["steps"] = tuple(_build(StepConfig, "steps", entry) for entry in settings.get("steps", ()))
    settings["machine"] = tuple(_build(MachineOverride, "machine", e) for e in settings.get("machine", ()))
    return _build(RackConfig, "rack", settings)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


_Config = TypeVar("_Config", RackConfig, StepConfig, MachineOverride)


def _build(config: type[_Config], where: str, settings: Mapping[str, Any]) -> _Config:
    known = {item.name for item in fields(config)}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ConfigError(f"{where}: unknown setting {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    try:
        return replace(config(**settings))
    except TypeError as error:
        raise ConfigError(f"{where}: {error}") from error
