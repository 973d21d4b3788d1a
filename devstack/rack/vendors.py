"""Whose habits a machine's Redfish face has: how BMCs differ from the schemas and from each other, as data.

``generic`` follows DMTF's schemas. The others differ from it by what is known of that maker's BMCs; a client that
works with all of them works with most machines.
"""

import dataclasses
from dataclasses import dataclass, field

RESET_TYPES = (
    "On",
    "ForceOff",
    "GracefulShutdown",
    "GracefulRestart",
    "ForceRestart",
    "Nmi",
    "ForceOn",
    "PushPowerButton",
    "PowerCycle",
)
BOOT_TARGETS = {
    "None": "default",
    "Pxe": "pxe",
    "Cd": "cdrom",
    "Hdd": "disk",
    "BiosSetup": "bios",
    "Floppy": "floppy",
    "UefiHttp": "http",
}
"""By name in Redfish: the device of the rack."""


@dataclass(frozen=True)
class Drive:
    """A virtual drive; ``kind`` is what a machine sees."""

    types: tuple[str, ...]
    kind: str


CD = Drive(("CD", "DVD"), "cd")
STICK = Drive(("Floppy", "USBStick"), "usb")
SLOT = Drive(("CD", "DVD", "USBStick"), "cd")


@dataclass(frozen=True)
class Vendor:
    """A maker's habits.

    :param ids: of system, manager and chassis on a face of one machine; empty: the machine's UUID.
    :param manager_model: of the BMC.
    :param oem: its name in ``Oem`` and in the service root.
    :param drives: virtual drives by their id.
    :param media_at: whose drives they are: ``manager``, ``system`` or both.
    :param media_slot: the only drive that takes images; None: each does.
    :param media_by_patch: media are inserted and ejected by PATCH, there are no actions.
    :param media_refuses: properties of InsertMedia that are an error.
    :param media_requires: properties of InsertMedia without which it is an error.
    :param eject_needs_body: EjectMedia without a body is an error.
    :param insert_over: whether an image can be inserted where there is one already.
    :param eject_empty: whether an empty drive can be ejected.
    :param boot_targets: device of the rack by the name of the boot target.
    :param shown_as: boot target that is shown for a device of the rack that no target chooses.
    :param boot_frequencies: what BootSourceOverrideEnabled can be.
    :param boot_needs_frequency: a target without BootSourceOverrideEnabled is an error.
    :param boot_in_settings: boot overrides are changed in a settings resource.
    :param bios_needs_apply_time: settings wait for ever unless a time to apply them was given.
    :param task_location: the header Location of a task leads to the ``task`` (answered 202 until it ends) or to its
        ``monitor``.
    :param task_retry_after: seconds that answers of running tasks say to wait; sushy 5.14 cannot wait for such a task.
    :param task_prefix: of a task's id.
    :param busy_in_post: a change while the firmware starts is refused.
    :param updates_at_boot: a task of an update, unless it is the BMC's own, waits for the next boot.
    :param volume_times: when volumes can be made and deleted.
    :param power_repeats: whether power on of a machine that is on, or off of one that is off, succeeds.
    """

    manufacturer: str = "Ingot"
    model: str = "rack"
    manager_model: str = "rack"
    oem: str | None = None
    ids: tuple[str, str, str] | None = None
    drives: dict[str, Drive] = field(default_factory=lambda: {"Cd": CD, "Floppy": STICK})
    media_at: tuple[str, ...] = ("manager", "system")
    media_slot: str | None = None
    media_by_patch: bool = False
    media_refuses: tuple[str, ...] = ()
    media_requires: tuple[str, ...] = ()
    eject_needs_body: bool = False
    insert_over: bool = True
    eject_empty: bool = True
    reset_types: tuple[str, ...] = RESET_TYPES
    boot_targets: dict[str, str] = field(default_factory=lambda: dict(BOOT_TARGETS))
    shown_as: dict[str, str] = field(default_factory=dict)
    boot_frequencies: tuple[str, ...] = ("Disabled", "Once", "Continuous")
    boot_needs_frequency: bool = False
    boot_in_settings: bool = False
    bios_needs_apply_time: bool = False
    task_location: str = "monitor"
    task_retry_after: int | None = None
    task_prefix: str = ""
    busy_in_post: bool = False
    updates_at_boot: bool = False
    volume_times: tuple[str, ...] = ("Immediate", "OnReset")
    power_repeats: bool = True


VENDORS = {
    "generic": Vendor(),
    # Drives have numbers, eject needs an empty object, changes during POST are refused, volumes wait for a reset.
    "ilo": Vendor(
        manufacturer="HPE",
        model="ProLiant DL360 Gen10",
        oem="Hpe",
        ids=("1", "1", "1"),
        drives={"1": STICK, "2": CD},
        media_at=("manager",),
        eject_needs_body=True,
        insert_over=False,
        reset_types=("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"),
        busy_in_post=True,
        volume_times=("OnReset",),
    ),
    # Work is a job with an id of its own; BIOS settings and updates wait for a job; an occupied drive refuses an image.
    # Cd is a drive in the machine: a virtual one is chosen by a configuration that the BMC imports.
    "dell": Vendor(
        manufacturer="Dell Inc.",
        model="PowerEdge R650",
        manager_model="15G Monolithic",
        oem="Dell",
        ids=("System.Embedded.1", "iDRAC.Embedded.1", "System.Embedded.1"),
        drives={"CD": CD, "RemovableDisk": STICK},
        media_at=("manager",),
        insert_over=False,
        eject_empty=False,
        reset_types=(
            "On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi",
            "PowerCycle",
        ),
        boot_targets={**BOOT_TARGETS, "Cd": "optical"},
        shown_as={"cdrom": "Cd"},
        bios_needs_apply_time=True,
        task_location="task",
        task_retry_after=1,
        task_prefix="JID_",
        updates_at_boot=True,
        power_repeats=False,
    ),
    # The virtual CD is a USB device: a boot from Cd finds nothing.
    "supermicro": Vendor(
        manufacturer="Supermicro",
        model="X12",
        oem="Supermicro",
        ids=("1", "1", "1"),
        drives={"CD1": CD},
        media_at=("manager",),
        media_refuses=("Inserted", "WriteProtected"),
        boot_targets={**BOOT_TARGETS, "Cd": "optical", "UsbCd": "cdrom"},
        boot_needs_frequency=True,
    ),
    # Media come and go by PATCH.
    "lenovo": Vendor(
        manufacturer="Lenovo",
        model="ThinkSystem SD530",
        oem="Lenovo",
        ids=("1", "1", "1"),
        drives={"EXT1": CD, "EXT2": CD},
        media_at=("manager",),
        media_by_patch=True,
    ),
    "cisco": Vendor(
        manufacturer="Cisco Systems Inc",
        model="UCS C845A M8",
        oem="Cisco",
        ids=("1", "1", "1"),
        media_requires=("TransferProtocolType",),
    ),
    # Boot overrides are in a settings resource; images need a login, even an empty one.
    "nvidia": Vendor(
        manufacturer="NVIDIA",
        model="DGX",
        oem="Nvidia",
        ids=("DGX", "BMC", "DGX"),
        drives={"USB1": CD, "USB2": CD},
        media_at=("manager",),
        media_requires=("UserName", "Password"),
        boot_in_settings=True,
    ),
}  # fmt: skip
# An iDRAC 10: drives are the system's, can be anything, and only the first takes an image.
VENDORS["idrac10"] = dataclasses.replace(
    VENDORS["dell"],
    model="PowerEdge R670",
    manager_model="17G Monolithic",
    drives={"2": SLOT, "1": SLOT},
    media_at=("system",),
    media_slot="1",
)
