"""The agent's commands around the image: write it, find out what was written, boot it."""

import base64
import binascii
import gzip
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests

from ingot.rack import images, partitions, root_device
from ingot.rack.commands import CommandError, CommandSpec
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


async def prepare_image(agent: "Agent", params: dict[str, Any]) -> dict[str, str]:
    """Download ``image_info`` to the root device and add the config drive.

    The disk holds the image only when the checksum was right: a real agent checks after writing, too.
    """
    return {"result": "prepare_image: " + await write(agent, params, agent.node)}


async def write(agent: "Agent", params: dict[str, Any], node: dict[str, Any]) -> str:
    """Do what prepare_image does for ``node``, whose properties may hold root device hints."""
    info = params.get("image_info")
    if not isinstance(info, dict):
        raise CommandError("InvalidCommandParamsError", "image_info is missing")
    faults = agent.machine.faults
    device = await in_thread(agent.machine.site.quick, _root_device, agent, node)
    download = images.Download(
        info=info,
        scratch=agent.machine.directory,
        stopped=agent.gone,
        not_found=faults.strike("image_404"),
        corrupt=faults.strike("checksum_wrong"),
    )
    size = _TINY if faults.strike("disk_too_small") else device.size
    job = _Job(device, size, download, params.get("configdrive"))
    await in_thread(agent.machine.site.heavy, _write, job)
    return f"image ({info.get('id')}) written to device {device.name} root_uuid={_root_uuid(device)}"


def _root_device(agent: "Agent", node: dict[str, Any]) -> BlockDevice:
    try:
        return root_device.choose(block_devices(agent.machine.disks), node)
    except root_device.DeviceNotFound as error:
        raise CommandError("DeviceNotFound", "Error finding the disk or partition device to deploy the image "
                           f"onto: {error}") from error  # fmt: skip


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
        raise CommandError("InstanceDeployFailure", f"config drive: {error}") from error


def decode_config_drive(value: str) -> bytes:
    """Return the config drive in ``value``: base64 of a gzip file, or an http(s) URL of the same."""
    if value.startswith(("http://", "https://")):
        try:
            answer = requests.get(value, timeout=images.TIMEOUT)
            answer.raise_for_status()
        except requests.RequestException as error:
            raise CommandError("ImageDownloadError", f"config drive {value}: {error}") from error
        value = answer.text
    try:
        return gzip.decompress(base64.b64decode(value, validate=False))
    except (binascii.Error, OSError, EOFError, zlib.error) as error:
        raise CommandError("InvalidCommandParamsError", f"config drive: not a gzip file in base64: {error}") from error


def _root_uuid(device: BlockDevice) -> str:
    """Return what stands for the root partition of a whole-disk image: the MBR's disk identifier."""
    return f"0x{partitions.mbr_disk_id(device):08x}"


async def get_partition_uuids(agent: "Agent", params: dict[str, Any]) -> dict[str, str]:
    return {"root uuid": _root_uuid(_root_device(agent, agent.node))}


async def install_bootloader(agent: "Agent", params: dict[str, Any]) -> None:
    """Check that the firmware will find what was written; a whole-disk image brings its own loader."""
    device = _root_device(agent, agent.node)
    if partitions.boot_signature(device) is None and not params.get("ignore_bootloader_failure"):
        raise CommandError("CommandExecutionError", f"{device.name} has no boot sector: nothing to start")


async def sync(agent: "Agent", params: dict[str, Any]) -> None:
    for disk in agent.machine.disks:
        await in_thread(agent.machine.site.heavy, disk.flush)


async def power_off(agent: "Agent", params: dict[str, Any]) -> None:
    agent.machine.power_off_soon()


async def restart(agent: "Agent", params: dict[str, Any]) -> None:
    agent.machine.restart_soon()


COMMANDS = {
    "image.install_bootloader": CommandSpec(install_bootloader),
    "standby.get_partition_uuids": CommandSpec(get_partition_uuids, asynchronous=False),
    "standby.power_off": CommandSpec(power_off),
    "standby.prepare_image": CommandSpec(prepare_image),
    "standby.reboot": CommandSpec(restart),
    "standby.run_image": CommandSpec(restart),
    "standby.sync": CommandSpec(sync),
}
