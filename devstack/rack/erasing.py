"""How the agent erases disks: with their own secure erase where they have one, else by overwriting them."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ingot.rack.command_errors import CommandError
from ingot.rack.disks import Disk
from ingot.rack.loop import in_thread
from ingot.rack.raid import BlockDevice, block_devices

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_ERASE_ERROR = "BlockDeviceEraseError"
_NOT_POSSIBLE = "IncompatibleHardwareMethodError"
_NAMES = {"ata": "ATA secure erase", "nvme": "NVMe format"}


@dataclass(frozen=True)
class ErasureOptions:
    """Settings of the service. The defaults are those of a real agent that is given none."""

    agent_enable_ata_secure_erase: bool = True
    agent_enable_nvme_secure_erase: bool = True
    agent_continue_if_secure_erase_failed: bool = False
    agent_erase_devices_iterations: int = 1
    agent_erase_devices_zeroize: bool = True
    agent_erase_skip_read_only: bool = False
    disk_erasure_concurrency: int = 1

    @classmethod
    def of(cls, node: dict[str, Any]) -> Self:
        """Return the options in a node's driver_internal_info, whose keys are the names of the fields."""
        given = node.get("driver_internal_info") or {}
        return cls(**{key: given[key] for key in cls.__dataclass_fields__ if key in given})

    def secure(self, disk: Disk) -> bool:
        return bool(getattr(self, f"agent_enable_{disk.spec.kind}_secure_erase"))


class SecureEraseError(Exception):
    """A disk that has a secure erase did not carry it out."""


async def erase_completely(agent: "Agent", node: dict[str, Any]) -> None:
    """Erase all disks, some at a time; all are tried before the first failure is reported."""
    options = ErasureOptions.of(node)
    places = asyncio.Semaphore(options.disk_erasure_concurrency)

    async def erase(disk: Disk) -> None:
        async with places:
            await _erase(agent, disk, options)

    ends = await asyncio.gather(*(erase(disk) for disk in agent.machine.disks), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end


async def erase_metadata(agent: "Agent") -> None:
    """Erase what makes contents findable: of the disks, and of arrays, whose members keep what makes them members."""
    for device in block_devices(agent.machine.disks):
        await _erase_metadata(agent, device)


async def erase_quickly(agent: "Agent", node: dict[str, Any]) -> None:
    """Erase NVMe disks by themselves, which takes seconds, and the metadata of all others."""
    options = ErasureOptions.of(node)
    for disk in agent.machine.disks:
        try:
            done = disk.spec.kind == "nvme" and options.secure(disk) and await _secure_erase(agent, disk)
        except SecureEraseError as error:
            agent.machine.log(f"{error}: erasing its metadata")
            done = False
        if not done:
            await _erase_metadata(agent, disk)


async def _erase(agent: "Agent", disk: Disk, options: ErasureOptions) -> None:
    if disk.read_only and options.agent_erase_skip_read_only:
        agent.machine.log(f"{disk.name} is read only: left out")
        return
    if disk.read_only:
        raise CommandError(_ERASE_ERROR, f"{disk.name} is read only, and leaving out such disks was not allowed")
    try:
        if options.secure(disk) and await _secure_erase(agent, disk):
            return
    except SecureEraseError as error:
        if not options.agent_continue_if_secure_erase_failed:
            raise CommandError(_NOT_POSSIBLE, f"{error}, and shredding it instead was not allowed") from error
        agent.machine.log(f"{error}: shredding it")
    await in_thread(agent.machine.site.heavy, disk.shred, options.agent_erase_devices_zeroize)
    zeros = "yes" if options.agent_erase_devices_zeroize else "no"
    passes = options.agent_erase_devices_iterations
    agent.machine.log(f"shredded {disk.name}, passes of random data: {passes}, zeros at the end: {zeros}")


async def _secure_erase(agent: "Agent", disk: Disk) -> bool:
    """Have the disk erase itself; False if it cannot do that at all.

    A real agent takes an ATA disk without secure erase for what it is, and an NVMe disk without format for a failure.
    """
    how, state, faults = _NAMES[disk.spec.kind], disk.spec.state, agent.machine.faults
    if state == "unsupported" and disk.spec.kind == "ata":
        return False
    if state == "frozen" or faults.strike("disks_frozen"):
        raise SecureEraseError(f"{how} of {disk.name} is frozen by the firmware")
    if state in ("failing", "unsupported") or faults.strike("secure_erase_fails"):
        raise SecureEraseError(f"{how} of {disk.name} failed")
    await in_thread(agent.machine.site.heavy, disk.erase)
    agent.machine.log(f"erased {disk.name} by {how}")
    return True


async def _erase_metadata(agent: "Agent", device: BlockDevice) -> None:
    if device.read_only:
        agent.machine.log(f"{device.name} is read only: left out")
        return
    await in_thread(agent.machine.site.heavy, device.erase_metadata)
    agent.machine.log(f"erased the metadata of {device.name}")
