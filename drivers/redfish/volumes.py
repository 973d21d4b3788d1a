"""Volumes of storage controllers, which are arrays: which there are, and which drives new ones are made of."""

from collections.abc import Iterator
from typing import NamedTuple

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.redfish import connection, fields

GIB = 2**30


class Level(NamedTuple):
    """A RAID level.

    :param name: Redfish's ``RAIDType``.
    :param kind: its ``VolumeType``, for controllers from before that.
    :param least: how many drives it needs.
    :param spare: of these, how many do not hold data; for levels of mirrors, the half.
    """

    name: str
    kind: str
    least: int
    spare: int = 0
    mirrors: bool = False

    def count_data(self, drives: int) -> int:
        """Return how many of a number of drives hold data."""
        if self.mirrors:
            return 1 if self.name == "RAID1" else drives // 2
        return drives - self.spare


LEVELS = {
    "0": Level("RAID0", "NonRedundant", 1),
    "1": Level("RAID1", "Mirrored", 2, mirrors=True),
    "5": Level("RAID5", "StripedWithParity", 3, 1),
    "6": Level("RAID6", "StripedWithParity", 4, 2),
    "1+0": Level("RAID10", "SpannedMirrors", 4, mirrors=True),
    "5+0": Level("RAID50", "SpannedStripesWithParity", 6, 2),
    "6+0": Level("RAID60", "SpannedStripesWithParity", 8, 4),
}
_BY_NAME = {level.name: name for name, level in LEVELS.items()}
_BY_KIND = {"NonRedundant": "0", "Mirrored": "1", "StripedWithParity": "5", "SpannedMirrors": "1+0",
            "SpannedStripesWithParity": "5+0"}  # fmt: skip

_MEDIA = {"hdd": ("HDD", "SMR"), "ssd": ("SSD",)}
_PROTOCOLS = {"sata": ("SATA",), "sas": ("SAS",), "scsi": ("SAS", "SCSI")}
_HINTS = {"name": "Name", "model": "Model", "vendor": "Manufacturer", "serial": "SerialNumber"}
_UNUSABLE = ("Absent", "Disabled", "UnavailableOffline")


class Storage(NamedTuple):
    """A controller with its drives and volumes, as documents.

    :param path: of its volumes.
    """

    path: str
    names: frozenset[str]
    drives: list[Json]
    volumes: list[Json]
    apply_time: str | None


def read_storages(machine: connection.Machine) -> list[Storage]:
    """Return the controllers that can have volumes.

    :raises HardwareError: there are none.
    """
    place = fields.link(machine.system.json, "Storage")
    members = machine.read_members(place) if place else []
    found = [_read_storage(machine, one, path) for one in members if (path := fields.link(one, "Volumes"))]
    if not found:
        raise errors.HardwareError(
            what=f"Finding controllers of {machine.describe(machine.system_path)}", reason="none has Volumes"
        )
    return found


def _read_storage(machine: connection.Machine, document: Json, path: str) -> Storage:
    collection = machine.read(path)
    members = [machine.read(place) for place in fields.links(collection, "Members")]
    drives = [machine.read_optional(place) for place in fields.links(document, "Drives")]
    controllers = [fields.text(one, "Name") for one in fields.parts(document, "StorageControllers")]
    names = (fields.text(document, "Id"), fields.text(document, "Name"), *controllers)
    return Storage(
        path,
        frozenset(name for name in names if name),
        [one for one in drives if fields.link(one) and fields.part(one, "Status").get("State") not in _UNUSABLE],
        [one for one in members if fields.link(one) and _is_array(one)],
        _choose_time(collection),
    )


def _is_array(volume: Json) -> bool:
    """Return whether a volume is an array; many controllers show a drive without one as a volume too."""
    kinds = (volume.get("RAIDType"), volume.get("VolumeType"))
    return "RawDevice" not in kinds and volume.get("RAIDType") != "None"


def _choose_time(collection: Json) -> str | None:
    """Return when changes are to be made: at once where the controller can; None: it gives no choice."""
    times = fields.texts(fields.part(collection, "@Redfish.OperationApplyTimeSupport"), "SupportedValues")
    return next((time for time in ("Immediate", "OnReset") if time in times), None)


def list_drives(volume: Json) -> set[str]:
    """Return the paths of a volume's drives."""
    return set(fields.links(fields.part(volume, "Links"), "Drives"))


def find_level(volume: Json) -> str | None:
    """Return the level of a volume as Ingot's API has it."""
    return _BY_NAME.get(str(volume.get("RAIDType"))) or _BY_KIND.get(str(volume.get("VolumeType")))


class _Room:
    """The drives that are left, while arrays are planned."""

    def __init__(self, storages: list[Storage], ignores_volumes: bool) -> None:
        self._storages = storages
        self.taken = set() if ignores_volumes else {path for one in storages for volume in one.volumes
                                                    for path in list_drives(volume)}  # fmt: skip

    def choose(self, where: str, disk: Json) -> tuple[Storage, list[Json]]:
        """Return the controller and the drives of an array; they are taken afterwards.

        :raises StepFailed: the machine has not what it needs.
        """
        level = LEVELS[disk["raid_level"]]
        number = disk.get("number_of_physical_disks") or max(_count_names(disk.get("physical_disks")), level.least)
        if number < level.least:
            raise errors.StepFailed(f"{where}: level {disk['raid_level']} needs at least {level.least} disks")
        for storage in self._storages:
            if disk.get("controller") not in (None, *storage.names):
                continue
            drives = [one for one in storage.drives if self._fits(one, disk, number)]
            # Small ones first, unless the array is to have all that there is.
            drives.sort(key=lambda one: fields.number(one, "CapacityBytes") or 0, reverse=disk["size_gb"] == "MAX")
            if len(drives) >= number:
                self.taken |= {str(one["@odata.id"]) for one in drives[:number]}
                return storage, drives[:number]
        listed = ", ".join(sorted(name for one in self._storages for name in one.names))
        raise errors.StepFailed(
            f"{where}: no controller has {number} free disks as it asks for (controllers: {listed}); the disks of "
            "other arrays are not free, unless share_physical_disks is true"
        )

    def _fits(self, drive: Json, disk: Json, number: int) -> bool:
        if drive["@odata.id"] in self.taken and not disk.get("share_physical_disks"):
            return False
        media, protocol = _MEDIA.get(disk.get("disk_type", "")), _PROTOCOLS.get(disk.get("interface_type", ""))
        size = disk["size_gb"]
        needed = 0 if size == "MAX" else size * GIB / LEVELS[disk["raid_level"]].count_data(number)
        return (
            (media is None or fields.text(drive, "MediaType") in media)
            and (protocol is None or fields.text(drive, "Protocol") in protocol)
            and (fields.number(drive, "CapacityBytes") or 0) >= needed
            and _is_named(drive, disk.get("physical_disks"))
        )


def _count_names(named: object) -> int:
    """Return how many disks are named one by one."""
    return len(named) if isinstance(named, list) and all(isinstance(one, str) for one in named) else 0


def _is_named(drive: Json, named: object) -> bool:
    """Return whether a drive is one of those that an array may have: its names, or hints that it must fulfil."""
    if named is None:
        return True
    if isinstance(named, dict):
        return all(key in _HINTS and drive.get(_HINTS[key]) == value for key, value in named.items())
    own = {fields.text(drive, key) for key in ("Id", "Name", "SerialNumber", "@odata.id")}
    return isinstance(named, list) and any(_is_named(drive, one) if isinstance(one, dict) else one in own
                                           for one in named)  # fmt: skip


def plan(storages: list[Storage], disks: list[Json], ignores_volumes: bool) -> Iterator[Json]:
    """Yield what to create, in order.

    Arrays that name their disks come first, those that get what is left come last.

    :param ignores_volumes: whether volumes that exist are deleted before.
    :raises StepFailed: the machine has not what an array needs.
    """
    room = _Room(storages, ignores_volumes)
    order = sorted(
        range(len(disks)), key=lambda one: ("physical_disks" not in disks[one], disks[one]["size_gb"] == "MAX")
    )
    for number in order:
        disk = disks[number]
        storage, drives = room.choose(f"logical_disks[{number}]", disk)
        level = LEVELS[disk["raid_level"]]
        data: Json = {
            "RAIDType": level.name,
            "VolumeType": level.kind,
            "Links": {"Drives": [{"@odata.id": one["@odata.id"]} for one in drives]},
        }
        if disk["size_gb"] != "MAX":
            data["CapacityBytes"] = disk["size_gb"] * GIB
        if disk.get("volume_name"):
            data["Name"] = disk["volume_name"]
        if storage.apply_time:
            data["@Redfish.OperationApplyTime"] = storage.apply_time
        yield {
            "path": storage.path,
            "data": data,
            "disk": disk,
            "existing": [] if ignores_volumes else [one["@odata.id"] for one in storage.volumes],
            "job": {},
        }


def find_created(storages: list[Storage], planned: Json) -> tuple[Storage, Json] | None:
    """Return the volume that was created as planned, and its controller; None: there is none."""
    drives = {link["@odata.id"] for link in planned["data"]["Links"]["Drives"]}
    name = planned["data"].get("Name")
    for storage in storages:
        for volume in storage.volumes if storage.path == planned["path"] else ():
            if volume["@odata.id"] in planned["existing"] or list_drives(volume) != drives:
                continue
            if not planned["disk"].get("share_physical_disks") or name in (None, volume.get("Name")):
                return storage, volume
    return None


def describe(storage: Storage, volume: Json, disk: Json) -> Json:
    """Return an array as ``raid_config`` has it.

    :param disk: what was requested of it; empty if nothing is known of that.
    """
    paths = list_drives(volume)
    drives = [one for one in storage.drives if one["@odata.id"] in paths]
    size, wwn = fields.number(volume, "CapacityBytes"), fields.find_name(volume, "NAA")
    return {
        **disk,
        "raid_level": find_level(volume) or disk.get("raid_level"),
        "size_gb": int(size / GIB) if size else disk.get("size_gb"),
        "volume_name": fields.text(volume, "Name"),
        "controller": disk.get("controller") or min(storage.names, default=None),
        "physical_disks": [fields.text(one, "Name") or fields.text(one, "Id") for one in drives],
        **({"root_device_hint": {"wwn": wwn}} if wwn else {}),
    }
