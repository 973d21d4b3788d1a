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

    def validate(self, task: Task) -> None:
        raise self.not_supported(self.interface_type)


class NoBIOS(_Unsupported, bios.BIOSInterface):
    pass


class NoConsole(_Unsupported, console.ConsoleInterface):
    def stop_console(self, task: Task) -> None:
        """Do nothing: flows stop the consoles of all nodes."""


class NoFirmware(_Unsupported, firmware.FirmwareInterface):
    pass


class NoInspect(_Unsupported, inspect.InspectInterface):
    pass


class NoRAID(_Unsupported, raid.RAIDInterface):
    def validate_raid_config(self, raid_config: object) -> None:
        raise self.not_supported("raid_config")


class NoRescue(_Unsupported, rescue.RescueInterface):
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
    """For machines on one flat network: nothing is switched, and no VIF is noted."""

    def add_provisioning_network(self, task: Task) -> None:
        """Do nothing, like the others."""

    remove_provisioning_network = add_cleaning_network = remove_cleaning_network = add_provisioning_network
    configure_tenant_networks = unconfigure_tenant_networks = add_provisioning_network

    def list_vifs(self, task: Task) -> list[Json]:
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
