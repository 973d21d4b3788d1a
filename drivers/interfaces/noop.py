"""Implementations that do nothing: what a hardware type without a feature is given for it (specification 004).

What a user starts is refused with an error that says so; what flows call does nothing.
"""

from ingot.common.json_types import Json
from ingot.drivers.interfaces import (
    bios,
    console,
    firmware,
    inspect,
    management,
    network,
    raid,
    rescue,
    storage,
    vendor,
)
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task


class _Unsupported(BaseInterface):
    """A feature that the machine does not have; the API reports it as not supported."""

    supported = False

    def validate(self, task: Task) -> None:
        raise self.not_supported(self.interface_type)


class NoBIOS(_Unsupported, bios.BIOSInterface):
    def cache_bios_settings(self, task: Task) -> None:
        pass


class NoConsole(_Unsupported, console.ConsoleInterface):
    def start_console(self, task: Task) -> None:
        raise self.not_supported("start_console")

    def stop_console(self, task: Task) -> None:
        pass

    def get_console(self, task: Task) -> console.ConsoleInfo:
        raise self.not_supported("get_console")


class NoFirmware(_Unsupported, firmware.FirmwareInterface):
    def cache_firmware_components(self, task: Task) -> None:
        pass


class NoInspect(_Unsupported, inspect.InspectInterface):
    def inspect_hardware(self, task: Task) -> None:
        raise self.not_supported("inspect_hardware")

    def clean_up(self, task: Task) -> None:
        pass


class NoRAID(_Unsupported, raid.RAIDInterface):
    def get_logical_disk_properties(self) -> dict[str, str]:
        return {}

    def validate_raid_config(self, raid_config: object) -> None:
        raise self.not_supported("raid_config")


class NoRescue(_Unsupported, rescue.RescueInterface):
    def rescue(self, task: Task, password_hash: str) -> None:
        raise self.not_supported("rescue")

    def unrescue(self, task: Task) -> None:
        raise self.not_supported("unrescue")

    def clean_up(self, task: Task) -> None:
        pass


class NoVendor(_Unsupported, vendor.VendorInterface):
    pass


class NoopManagement(management.ManagementInterface):
    """For machines whose boot order is set once by hand: network first."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return []

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        """Change nothing: flows call this before every boot, and the machine's own order serves them."""

    def get_boot_device(self, task: Task) -> management.BootDevice:
        return {"boot_device": None, "persistent": None}


class NoopNetwork(network.NetworkInterface):
    """For machines on one flat network: nothing is switched."""

    def add_provisioning_network(self, task: Task) -> None:
        pass

    def remove_provisioning_network(self, task: Task) -> None:
        pass

    def add_cleaning_network(self, task: Task) -> None:
        pass

    def remove_cleaning_network(self, task: Task) -> None:
        pass

    def configure_tenant_networks(self, task: Task) -> None:
        pass

    def unconfigure_tenant_networks(self, task: Task) -> None:
        pass

    def list_vifs(self, task: Task) -> list[Json]:
        """Return none: whatever network a user requests, the machine is on the one it is on, and nothing is noted."""
        return []

    def attach_vif(self, task: Task, vif: Json) -> None:
        pass

    def detach_vif(self, task: Task, vif_id: str) -> None:
        pass


class NoopStorage(storage.StorageInterface):
    """For machines without volumes: images go to local disks."""

    def attach_volumes(self, task: Task) -> None:
        pass

    def detach_volumes(self, task: Task) -> None:
        pass

    def should_write_image(self, task: Task) -> bool:
        return True
