"""Fake hardware: machines that exist only in the database, for tests, trials and load measurements.

The interfaces keep what they are given in the node and do no input or output. Their steps have priority 0: they run
only on request. ``pause`` and ``fail`` of the vendor interface are for trying out what a user sees when a step takes
long or fails.
"""

import time
from typing import Unpack

from oslo_log import log

from ingot.common import errors, states
from ingot.common.json_types import InternalInfo, Json
from ingot.drivers.generic.fake_console import FakeConsole
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import (
    base,
    bios,
    boot,
    console,
    deploy,
    firmware,
    inspect,
    management,
    noop,
    power,
    raid,
    rescue,
    results,
    sensors,
    vendor,
)
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)


def _recall(task: Task) -> InternalInfo:
    return task.node.driver_internal_info


def _remember(task: Task, **values: Unpack[InternalInfo]) -> None:
    task.set(driver_internal_info={**task.node.driver_internal_info, **values})


_FAULT = "fake_power_fault"


class FakePower(power.PowerInterface):
    """Is in the state that was last set, at once; or refuses to change it, where a fault is to be tried out.

    Until one was set it has none, as with Ironic.
    """

    sees_changes = False

    def get_properties(self) -> dict[str, str]:
        return {_FAULT: "What is wrong with the machine's power: it stays as it is, with this message. Optional."}

    def get_power_state(self, task: Task) -> str | None:
        return task.node.power_state

    def start_power_change(self, task: Task, target: str) -> None:
        if _FAULT in task.node.driver_info:
            raise errors.HardwareError(what=f"{target} (fake power)", reason=task.node.driver_info[_FAULT])
        goes_off = target in (states.POWER_OFF, states.SOFT_POWER_OFF)
        task.set(power_state=states.POWER_OFF if goes_off else states.POWER_ON)


_LIGHTS = (
    management.Indicator("chassis", "led-0", readonly=True, states=("off", "on")),
    management.Indicator("system", "led", readonly=False, states=("blinking", "off", "on")),
)


_SENSORS: tuple[sensors.Sensor, ...] = (
    {"id": "1", "name": "Inlet", "kind": "temperature", "reading": 21.0, "unit": "°C",
     "thresholds": {"upper_non_critical": 38.0, "upper_critical": 42.0}, "health": "OK", "place": None, "states": []},
    {"id": "2", "name": "Fan", "kind": "fan", "reading": 5400.0, "unit": "RPM",
     "thresholds": {"lower_critical": 600.0}, "health": "OK", "place": None, "states": []},
)  # fmt: skip


class FakeManagement(management.ManagementInterface):
    """Keeps every setting, but does no interrupt and cannot read virtual media: nor can that of Ironic."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(management.BOOT_DEVICES)

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in management.BOOT_DEVICES:
            raise errors.Invalid(
                field="boot_device", value=device, allowed=f"One of {', '.join(management.BOOT_DEVICES)}."
            )
        _remember(task, fake_boot_device={"boot_device": device, "persistent": persistent})

    def get_boot_device(self, task: Task) -> management.BootDevice:
        device = _recall(task).get("fake_boot_device") or {"boot_device": "pxe", "persistent": False}
        return {"boot_device": device["boot_device"], "persistent": device["persistent"]}

    def set_boot_mode(self, task: Task, mode: str) -> None:
        """Do nothing: what the machine has is the node's ``boot_mode``, and so with secure boot."""

    def set_secure_boot(self, task: Task, enabled: bool) -> None:
        pass

    def get_supported_indicators(self, task: Task) -> list[management.Indicator]:
        return list(_LIGHTS)

    def get_indicator_state(self, task: Task, indicator: management.Indicator) -> str:
        return _recall(task).get("fake_indicators", {}).get(_indicator_key(indicator), "on")

    def set_indicator_state(self, task: Task, indicator: management.Indicator, state: str) -> None:
        lights = _recall(task).get("fake_indicators", {})
        _remember(task, fake_indicators={**lights, _indicator_key(indicator): state})

    def get_sensors(self, task: Task) -> list[sensors.Sensor]:
        """Return two that read always the same."""
        return [{**one, "thresholds": dict(one["thresholds"]), "states": []} for one in _SENSORS]

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str, source: str | None) -> None:
        inside = _recall(task).get("fake_virtual_media", {})
        _remember(task, fake_virtual_media={**inside, device_type: image_url})

    def detach_virtual_media(self, task: Task, device_types: list[str]) -> None:
        inside = _recall(task).get("fake_virtual_media", {})
        _remember(task, fake_virtual_media={name: url for name, url in inside.items() if name not in device_types})


def _indicator_key(indicator: management.Indicator) -> str:
    return f"{indicator.name}@{indicator.component}"


class FakeBoot(boot.BootInterface):
    """Accepts everything, as nothing boots."""

    boots_from_network = True

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        pass

    def clean_up_ramdisk(self, task: Task) -> None:
        """Do nothing, like the others."""

    prepare_instance = clean_up_instance = clean_up_ramdisk


class FakeDeploy(deploy.DeployInterface):
    """Deploys nothing, in one step."""

    @base.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> None:
        """Do the whole deployment."""

    def prepare(self, task: Task) -> None:
        pass

    tear_down = prepare


_SETTINGS: base.ArgsInfo = {"settings": {"description": "List of objects with name and value.", "required": True}}


class FakeBIOS(bios.BIOSInterface):
    """Has the settings that were applied last: none before the first, and none after a factory reset."""

    @base.service_step(argsinfo=_SETTINGS, requires_ramdisk=False)
    @base.deploy_step(priority=0, argsinfo=_SETTINGS, idempotent=True)
    @base.clean_step(priority=0, argsinfo=_SETTINGS, requires_ramdisk=False)
    def apply_configuration(self, task: Task, settings: list[Json]) -> None:
        nameless = [setting for setting in settings if not isinstance(setting, dict) or "name" not in setting]
        if nameless:
            raise errors.Invalid(
                field="settings", value=nameless, allowed="Each must be an object with name and value."
            )
        _remember(task, fake_bios_settings={one["name"]: one.get("value") for one in settings})
        self.cache_bios_settings(task)

    @base.service_step(requires_ramdisk=False)
    @base.deploy_step(priority=0, idempotent=True)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def factory_reset(self, task: Task) -> None:
        _remember(task, fake_bios_settings={})
        self.cache_bios_settings(task)

    @base.verify_step(priority=10)
    def cache_bios_settings(self, task: Task) -> None:
        applied = _recall(task).get("fake_bios_settings", {})
        task.keep_bios_settings(
            {"name": name, "value": None if value is None else str(value)} for name, value in applied.items()
        )


class FakeGraphicalConsole(console.ConsoleInterface):
    """Has a screen as interfaces with real ones do; its address is one for examples (RFC 5737)."""

    def start_console(self, task: Task) -> None:
        _remember(task, vnc_host="192.0.2.1", vnc_port=5900)

    def stop_console(self, task: Task) -> None:
        left = {key: value for key, value in _recall(task).items() if key not in ("vnc_host", "vnc_port")}
        task.set(driver_internal_info=left)

    def get_console(self, task: Task) -> console.ConsoleInfo:
        host, port = _recall(task).get("vnc_host"), _recall(task).get("vnc_port")
        return {"type": "vnc", "url": f"vnc://{host}:{port}/{task.node.uuid}"}


_UPDATES: base.ArgsInfo = {"settings": {"description": "List of objects with component and url.", "required": True}}


class FakeFirmware(firmware.FirmwareInterface):
    """Each update leads to the version after: v1, v2 ..."""

    @base.service_step(argsinfo=_UPDATES, requires_ramdisk=False)
    @base.deploy_step(priority=0, argsinfo=_UPDATES, idempotent=True)
    @base.clean_step(priority=0, argsinfo=_UPDATES, requires_ramdisk=False)
    def update(self, task: Task, settings: list[Json]) -> None:
        _remember(task, fake_firmware=[*_recall(task).get("fake_firmware", []), *settings])
        self.cache_firmware_components(task)

    @base.verify_step(priority=10)
    def cache_firmware_components(self, task: Task) -> None:
        updates = _recall(task).get("fake_firmware", [])
        flashed = [update.get("component") for update in updates if isinstance(update, dict)]
        versions = {name: 1 + flashed.count(name) for name in ("bios", "bmc")}
        task.keep_firmware_components(
            {
                "component": name,
                "initial_version": "v1",
                "current_version": f"v{version}",
                "last_version_flashed": f"v{version}" if version > 1 else None,
            }
            for name, version in versions.items()
        )


class FakeInspect(inspect.InspectInterface):
    """Finds nothing new."""

    def inspect_hardware(self, task: Task) -> None:
        """Leave the properties as they are."""


_ARRAYS: base.ArgsInfo = {
    "raid_config": {"description": "Object with logical_disks, a list of arrays.", "required": True}
}


class FakeRAID(raid.RAIDInterface):
    """Has every array that it is to build."""

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def create_configuration(self, task: Task) -> None:
        """Build ``target_raid_config``."""
        self.validate_raid_config(task.node.target_raid_config)
        task.set(raid_config=task.node.target_raid_config)

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def delete_configuration(self, task: Task) -> None:
        task.set(raid_config={})

    @base.service_step(argsinfo=_ARRAYS, requires_ramdisk=False)
    @base.deploy_step(priority=0, argsinfo=_ARRAYS, idempotent=True)
    def apply_configuration(self, task: Task, raid_config: Json) -> None:
        self.validate_raid_config(raid_config)
        task.set(raid_config=raid_config)


class FakeRescue(rescue.RescueInterface):
    def rescue(self, task: Task, password_hash: str) -> None:
        pass

    def unrescue(self, task: Task) -> None:
        pass


_PAUSE: base.ArgsInfo = {"seconds": {"description": "How long the step takes. Default: 1.", "required": False}}
_FAIL: base.ArgsInfo = {"message": {"description": "What the error says.", "required": False}}


class FakeVendor(vendor.VendorInterface):
    @base.service_step(abortable=True, argsinfo=_PAUSE, requires_ramdisk=False)
    @base.deploy_step(priority=0, argsinfo=_PAUSE, idempotent=True)
    @base.clean_step(priority=0, abortable=True, argsinfo=_PAUSE, requires_ramdisk=False)
    def pause(self, task: Task, seconds: float = 1) -> results.Result:
        """Take some time, without a thread."""
        if seconds < 0:
            raise errors.Invalid(field="seconds", value=seconds, allowed="A number of at least 0.")
        over = task.memory.setdefault("over", time.time() + seconds)
        left = over - time.time()
        return results.PollAfter(left) if left > 0 else results.DONE

    @base.service_step(argsinfo=_FAIL, requires_ramdisk=False)
    @base.deploy_step(priority=0, argsinfo=_FAIL)
    @base.clean_step(priority=0, argsinfo=_FAIL, requires_ramdisk=False)
    def fail(self, task: Task, message: str = "as requested") -> None:
        """Fail."""
        raise errors.StepFailed(f"the fake step failed: {message}")

    @vendor.node_method(
        "POST", description="Compares bar with kazoo and keeps the result to itself.", returns_result=False
    )
    def second_method(self, task: Task, bar: str) -> bool:
        return bar == "kazoo"

    @vendor.node_method("POST", description="Whether bar is meow.")
    def third_method_sync(self, task: Task, bar: str) -> bool:
        return bar == "meow"

    @vendor.node_method(
        "POST", description="Compares bar with woof, without the node's lock.", returns_result=False, exclusive=False
    )
    def fourth_method_shared_lock(self, task: Task, bar: str) -> bool:
        return bar == "woof"

    @vendor.node_method("POST", description="Notes in the conductor's log that it was called.", returns_result=False)
    def log_passthrough(self, task: Task, **arguments: object) -> None:
        LOG.info("Node %s: log_passthrough was called with %s", task.node.uuid, ", ".join(sorted(arguments)) or "none")


class FakeHardware(GenericHardwareType):
    """Fakes first; the real ones after them let a real agent run on a machine whose power is fake."""

    supported_bios_interfaces: Supported = (FakeBIOS, noop.NoBIOS)
    supported_boot_interfaces: Supported = (FakeBoot, *GenericHardwareType.supported_boot_interfaces)
    supported_console_interfaces: Supported = (FakeConsole, FakeGraphicalConsole, noop.NoConsole)
    supported_deploy_interfaces: Supported = (FakeDeploy, *GenericHardwareType.supported_deploy_interfaces)
    supported_firmware_interfaces: Supported = (FakeFirmware, noop.NoFirmware)
    supported_inspect_interfaces: Supported = (FakeInspect, *GenericHardwareType.supported_inspect_interfaces)
    supported_management_interfaces: Supported = (FakeManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (FakePower,)
    supported_raid_interfaces: Supported = (FakeRAID, *GenericHardwareType.supported_raid_interfaces)
    supported_rescue_interfaces: Supported = (FakeRescue, *GenericHardwareType.supported_rescue_interfaces)
    supported_vendor_interfaces: Supported = (FakeVendor, noop.NoVendor)
