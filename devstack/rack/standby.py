"""The agent's commands around the image: write it, find out what was written, boot it."""

import base64
import binascii
import gzip
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests

from ingot.rack import images, partitions, root_device
from ingot.rack.command_errors import CommandError
from ingot.rack.commands import CommandSpec
from ingot.rack.loop import in_thread
from ingot.rack.raid import BlockDevice, block_devices

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_TINY = 2**20


@dataclass(frozen=True)
class _Job:
    """An image to be written, prepared on the event loop and done in a thread."""

    device: BlockDevice
    size: int
    download: images.Download
    config_drive: str | None


async def prepare_image(agent: "Agent", image_info: dict[str, Any], configdrive: str | None = None) -> str:
    """Download an image to the root device and add the config drive.

    The disk holds the image only when the checksum was right: a real agent checks after writing, too.
    """
    faults = agent.machine.faults
    device = await find_root_device(agent)
    download = images.Download(
        info=image_info,
        scratch=agent.machine.directory,
        stopped=agent.gone,
        not_found=faults.strike("image_404"),
        corrupt=faults.strike("checksum_wrong"),
    )
    size = _TINY if faults.strike("disk_too_small") else device.size
    job = _Job(device, size, download, configdrive)
    await in_thread(agent.machine.site.heavy, _write, job)
    agent.partition_uuids = {"root uuid": _root_uuid(device)}
    return f"image ({image_info.get('id')}) written to device {device.name} root_uuid={_root_uuid(device)}"


async def find_root_device(agent: "Agent") -> BlockDevice:
    """Choose a device by the node's hints; an agent that knows of none asks the service whether there are some now."""
    if not root_device.hints(agent.node):
        await agent.learn_of_its_node()
    return await in_thread(agent.machine.site.quick, _choose_device, agent)


def _choose_device(agent: "Agent") -> BlockDevice:
    try:
        return root_device.choose(block_devices(agent.machine.disks), agent.node)
    except root_device.DeviceNotFound as error:
        raise CommandError("DeviceNotFound", str(error)) from error


def _write(job: _Job) -> None:
    try:
        job.download.write_to(job.device, job.size)
        partitions.move_backup_to_end(job.device)
        if job.config_drive:
            partitions.write_config_drive(job.device, decode_config_drive(job.config_drive))
        job.device.flush()
    except images.ImageError as error:
        raise CommandError(error.kind, str(error)) from error
    except partitions.PartitionError as error:
        raise CommandError("DeploymentError", f"config drive: {error}") from error


def decode_config_drive(value: str) -> bytes:
    """Return the config drive in ``value``: base64 of a gzip file, or an http(s) URL of the same."""
    if value.startswith(("http://", "https://")):
        try:
            answer = requests.get(value, timeout=images.TIMEOUT)
            answer.raise_for_status()
        except requests.RequestException as error:
            raise CommandError("DeploymentError", f"config drive {value}: {error}") from error
        value = answer.text
    try:
        return gzip.decompress(base64.b64decode(value, validate=False))
    except (binascii.Error, OSError, EOFError, zlib.error) as error:
        raise CommandError("DeploymentError", f"config drive: not a gzip file in base64: {error}") from error


def _root_uuid(device: BlockDevice) -> str:
    """Return what stands for the root partition of a whole-disk image: the MBR's disk identifier."""
    return f"0x{partitions.mbr_disk_id(device):08x}"


async def get_partition_uuids(agent: "Agent") -> dict[str, str]:
    return agent.partition_uuids


async def install_bootloader(
    agent: "Agent",
    root_uuid: str,
    efi_system_part_uuid: str | None = None,
    prep_boot_part_uuid: str | None = None,
    target_boot_mode: str = "bios",
    ignore_bootloader_failure: bool | None = None,
) -> None:
    """Check that the firmware will find what was written; a whole-disk image brings its own loader."""
    device = _choose_device(agent)
    if partitions.boot_signature(device) is None and not ignore_bootloader_failure:
        raise CommandError("CommandExecutionError", f"{device.name} has no boot sector: nothing to start")


async def sync(agent: "Agent") -> None:
    for disk in agent.machine.disks:
        await in_thread(agent.machine.site.heavy, disk.flush)


async def power_off(agent: "Agent") -> None:
    agent.machine.power_off_soon()


async def run_image(agent: "Agent") -> None:
    agent.machine.restart_soon()


COMMANDS = {
    "image.install_bootloader": CommandSpec(install_bootloader),
    "standby.get_partition_uuids": CommandSpec(get_partition_uuids, asynchronous=False),
    "standby.power_off": CommandSpec(power_off),
    "standby.prepare_image": CommandSpec(prepare_image),
    "standby.run_image": CommandSpec(run_image),
    "standby.sync": CommandSpec(sync, asynchronous=False),
}
