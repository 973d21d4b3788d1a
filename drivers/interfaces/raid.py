"""The raid interface: arrays of disks, built by the machine's controller or by the agent."""

from collections.abc import Mapping

from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task

RAID_LEVELS: tuple[str, ...] = ("JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0")

LOGICAL_DISK_PROPERTIES: dict[str, str] = {
    "raid_level": f"RAID level. Required. One of {', '.join(RAID_LEVELS)}.",
    "size_gb": "Size in GiB, an integer above 0, or the string 'MAX' for all that is left. Required.",
    "volume_name": "Name of the array.",
    "is_root_volume": "Whether the image goes onto this array: true for one array at most. Default: false.",
    "controller": "Controller that builds the array; 'software' for one that the operating system builds.",
    "physical_disks": "Disks to use: names, or hints like those of root_device.",
    "number_of_physical_disks": "How many disks to use, an integer above 0.",
    "disk_type": "Type of disks to use: hdd or ssd.",
    "interface_type": "Interface of disks to use: sata, scsi or sas.",
    "share_physical_disks": "Whether other arrays may be on the same disks. Default: false.",
}
"""Keys of one of ``logical_disks`` in a raid configuration, with what the API says about them."""


class RAIDInterface(BaseInterface):
    """Implementations declare their work as steps: ``create_configuration`` and ``delete_configuration`` for cleaning,
    ``apply_configuration`` for deployments."""

    interface_type = "raid"

    def get_logical_disk_properties(self) -> dict[str, str]:
        """Return the keys of a logical disk that this implementation knows, with descriptions."""
        return LOGICAL_DISK_PROPERTIES

    def validate_raid_config(self, raid_config: object) -> None:
        """Check a raid configuration as users and templates give it.

        :raises Invalid: names the disk by its number, the key and what is allowed.
        """
        disks = raid_config.get("logical_disks") if isinstance(raid_config, Mapping) else None
        if not isinstance(disks, list) or not disks:
            allowed = "It needs logical_disks, a list of at least one object."
            raise errors.Invalid(field="raid_config", value=raid_config, allowed=allowed)
        for number, disk in enumerate(disks):
            self._check_disk(f"raid_config.logical_disks[{number}]", disk)
        if sum(bool(disk.get("is_root_volume")) for disk in disks) > 1:
            allowed = "Only one of them can be the root volume."
            raise errors.Invalid(field="raid_config.logical_disks", value=disks, allowed=allowed)

    def _check_disk(self, where: str, disk: object) -> None:
        known = self.get_logical_disk_properties()
        if not isinstance(disk, Mapping):
            raise errors.Invalid(field=where, value=disk, allowed="It must be an object.")
        for key in set(disk) - set(known):
            raise errors.Invalid(field=f"{where}.{key}", value=disk[key], allowed=f"Keys are: {', '.join(known)}.")
        level, size = disk.get("raid_level"), disk.get("size_gb")
        if level not in RAID_LEVELS:
            raise errors.Invalid(field=f"{where}.raid_level", value=level, allowed=f"One of {', '.join(RAID_LEVELS)}.")
        if size != "MAX" and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise errors.Invalid(field=f"{where}.size_gb", value=size, allowed="An integer above 0, or 'MAX'.")


def record_arrays(task: Task, built: Json) -> None:
    """Record the arrays that a machine has from now on; it has none if there is nothing in ``built``.

    A root volume's ``root_device_hint`` becomes ``properties.root_device``, so that images go onto that array. It is
    removed with the array, unless an operator has changed it since.

    :param built: a raid configuration: ``logical_disks``, of which at most one is the root volume.
    """
    info, properties = dict(task.node.driver_internal_info), dict(task.node.properties)
    before = info.pop("raid_root_device", None)
    if before is not None and properties.get("root_device") == before:
        del properties["root_device"]
    for disk in built.get("logical_disks", ()):
        if disk.get("is_root_volume") and disk.get("root_device_hint"):
            properties["root_device"] = info["raid_root_device"] = disk["root_device_hint"]
    kept = {**built, "last_updated": clock.iso(clock.now())} if built else {}
    task.set(raid_config=kept, properties=properties, driver_internal_info=info)
