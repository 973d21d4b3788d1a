"""The form of a RAID configuration: what ``states/raid`` takes, and what hardware is asked for later."""

from typing import Any

from ingot.api.web import fields
from ingot.common import errors

LEVELS = ("JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0")

_LOGICAL_DISK = fields.object_schema(
    {
        "controller": {"type": "string"},
        "disk_type": {"enum": ["hdd", "ssd"]},
        "interface_type": {"enum": ["sata", "scsi", "sas"]},
        "is_root_volume": {"type": "boolean"},
        "number_of_physical_disks": {"type": "integer", "minimum": 1},
        "physical_disks": {"type": "array", "items": {"type": ["string", "object"]}, "minItems": 1},
        "raid_level": {"enum": list(LEVELS)},
        "share_physical_disks": {"type": "boolean"},
        "size_gb": {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["MAX"]}]},
        "volume_name": {"type": "string", "maxLength": 64},
    },
    required=("raid_level", "size_gb"),
)

_CONFIG = fields.Schema(
    "target_raid_config",
    fields.object_schema(
        {"logical_disks": {"type": "array", "items": _LOGICAL_DISK, "minItems": 1}}, ("logical_disks",)
    ),
)


class _Target:
    """The request body; an empty object takes the configuration back."""

    schema = fields.Schema("RAID request", {"anyOf": [{"type": "object", "maxProperties": 0}, _CONFIG.document]})

    def check(self, value: Any, minor: int) -> dict[str, Any]:
        if value is None or value == {}:
            return {}
        _CONFIG.check(value)
        roots = sum(disk.get("is_root_volume", False) for disk in value["logical_disks"])
        if roots > 1:
            raise errors.Invalid(
                field="logical_disks", value=f"{roots} root volumes", allowed="At most one is_root_volume."
            )
        checked: dict[str, Any] = value
        return checked


TARGET = _Target()
