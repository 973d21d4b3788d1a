"""Fakes: interfaces of machines that are not there. They keep what they are told in the node and do no input or output.

Their steps have priority 0: they run only when somebody asks for them. ``pause`` and ``fail`` of the vendor interface
are for trying out what a user sees when a step takes long or fails.
"""

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from oslo_log import log

from ingot.common import errors, states
from ingot.drivers import results, steps
from ingot.drivers.interfaces import (
    bios,
    boot,
    console,
    deploy,
    firmware,
    inspect,
    management,
    power,
    raid,
    rescue,
    vendor,
)
from ingot.drivers.task import Task
from ingot.drivers.vendor_methods import node_method

LOG = log.getLogger(__name__)


def _recall(task: Task, key: str, default: Any) -> Any:
    return task.node.driver_internal_info.get(key, default)


def _remember(task: Task, **values: Any) -> None:
    task.set(driver_internal_info={**task.node.driver_internal_info, **values})


_FAULT = "fake_power_fault"


class FakePower(power.PowerInterface):
    """Is in the state that was last set, at once; or refuses to change it, where a fault is to be tried out."""

    sees_changes = False

    def get_properties(self) -> dict[str, str]:
        return {_FAULT: "What is wrong with the machine's power: it stays as it is, with this message. Optional."}

    def get_power_state(self, task: Task) -> str:
        return task.node.power_state or states.POWER_OFF

    def start_power_change(self, task: Task, target: str) -> None:
        if _FAULT in task.node.driver_info:
            raise errors.HardwareError(what=f"{target} (fake power)", reason=task.node.driver_info[_FAULT])
        goes_off = target in (states.POWER_OFF, states.SOFT_POWER_OFF)
        task.set(power_state=states.POWER_OFF if goes_off else states.POWER_ON)


_LIGHTS = (
    management.Indicator("chassis", "led-0", readonly=True, states=("off", "on")),
    management.Indicator("system", "led", readonly=False, states=("blinking", "off", "on")),
)


class FakeManagement(management.ManagementInterface):
    """Does as it is told, but for what the fake of the reference implementation does not do either: no interrupt, and
    its drives for virtual media cannot be looked into."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(management.BOOT_DEVICES)

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in management.BOOT_DEVICES:
            raise errors.Invalid(
                field="boot_device", value=device, allowed=f"One of {', '.join(management.BOOT_DEVICES)}."
            )
        _remember(task, fake_boot_device={"boot_device": device, "persistent": persistent})

    def get_boot_device(self, task: Task) -> dict[str, Any]:
        found: dict[str, Any] = _recall(task, "fake_boot_device", {"boot_device": "pxe", "persistent": False})
        return found

    def set_boot_mode(self, task: Task, mode: str) -> None:
        """Nothing to do: what the machine has is the node's ``boot_mode``, and so with secure boot."""

    def set_secure_boot(self, task: Task, enabled: bool) -> None:
        pass

    def get_supported_indicators(self, task: Task) -> list[management.Indicator]:
        return list(_LIGHTS)

    def get_indicator_state(self, task: Task, indicator: management.Indicator) -> str:
        state: str = _recall(task, "fake_indicators", {}).get(_called(indicator), "on")
        return state

    def set_indicator_state(self, task: Task, indicator: management.Indicator, state: str) -> None:
        _remember(task, fake_indicators={**_recall(task, "fake_indicators", {}), _called(indicator): state})

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str, source: str | None) -> None:
        _remember(task, fake_virtual_media={**_recall(task, "fake_virtual_media", {}), device_type: image_url})

    def detach_virtual_media(self, task: Task, device_types: list[str]) -> None:
        inside = _recall(task, "fake_virtual_media", {})
        _remember(task, fake_virtual_media={kind: url for kind, url in inside.items() if kind not in device_types})


def _called(indicator: management.Indicator) -> str:
    return f"{indicator.name}@{indicator.component}"


class FakeBoot(boot.BootInterface):
    """Boots whatever it is asked for, as nothing boots."""

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        pass

    def clean_up_ramdisk(self, task: Task) -> None:
        pass

    def prepare_instance(self, task: Task) -> None:
        pass

    def clean_up_instance(self, task: Task) -> None:
        pass


class FakeDeploy(deploy.DeployInterface):
    """Deploys nothing, in one step."""

    @steps.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> None:
        """The whole deployment."""

    def prepare(self, task: Task) -> None:
        pass

    def tear_down(self, task: Task) -> None:
        pass


_SETTINGS = {"settings": {"description": "List of objects with name and value.", "required": True}}

_DELIVERED: tuple[Mapping[str, Any], ...] = (
    {
        "name": "virtualization",
        "value": "on",
        "attribute_type": "Enumeration",
        "allowable_values": ["on", "off"],
        "read_only": False,
    },
    {"name": "boot_timeout", "value": "5", "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 60},
    {"name": "asset_tag", "value": "", "attribute_type": "String", "min_length": 0, "max_length": 32},
)
"""The settings of a new machine. It takes any others too."""


class FakeBIOS(bios.BIOSInterface):
    @steps.service_step(argsinfo=_SETTINGS, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_SETTINGS, idempotent=True)
    @steps.clean_step(priority=0, argsinfo=_SETTINGS, requires_ramdisk=False)
    def apply_configuration(self, task: Task, settings: list[dict[str, Any]]) -> None:
        nameless = [setting for setting in settings if not isinstance(setting, dict) or "name" not in setting]
        if nameless:
            raise errors.Invalid(
                field="settings", value=nameless, allowed="Each must be an object with name and value."
            )
        known = _recall(task, "fake_bios_settings", {})
        _remember(task, fake_bios_settings={**known, **{one["name"]: one.get("value") for one in settings}})
        self.cache_bios_settings(task)

    @steps.service_step(requires_ramdisk=False)
    @steps.deploy_step(priority=0, idempotent=True)
    @steps.clean_step(priority=0, requires_ramdisk=False)
    def factory_reset(self, task: Task) -> None:
        _remember(task, fake_bios_settings={})
        self.cache_bios_settings(task)

    @steps.verify_step(priority=10)
    def cache_bios_settings(self, task: Task) -> None:
        applied = _recall(task, "fake_bios_settings", {})
        delivered = {row["name"]: row for row in _DELIVERED}
        now = {name: {"name": name, "value": _text(value)} for name, value in applied.items()}
        task.keep_bios_settings([{**delivered.get(name, {}), **now.get(name, {})} for name in {**delivered, **now}])


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


class FakeConsole(console.ConsoleInterface):
    def start_console(self, task: Task) -> None:
        pass

    def stop_console(self, task: Task) -> None:
        pass

    def get_console(self, task: Task) -> dict[str, Any]:
        return {"type": "fake", "url": f"fake://{task.node.uuid}"}


class FakeGraphicalConsole(console.ConsoleInterface):
    """Tells of a screen as interfaces with real ones do; nobody listens at its address, which is one for examples
    (RFC 5737)."""

    _ADDRESS: ClassVar[Mapping[str, Any]] = {"vnc_host": "192.0.2.1", "vnc_port": 5900}

    def start_console(self, task: Task) -> None:
        _remember(task, **self._ADDRESS)

    def stop_console(self, task: Task) -> None:
        known = task.node.driver_internal_info
        task.set(driver_internal_info={key: value for key, value in known.items() if key not in self._ADDRESS})

    def get_console(self, task: Task) -> dict[str, Any]:
        host, port = _recall(task, "vnc_host", None), _recall(task, "vnc_port", None)
        return {"type": "vnc", "url": f"vnc://{host}:{port}/{task.node.uuid}"}


_UPDATES = {"settings": {"description": "List of objects with component and url.", "required": True}}


class FakeFirmware(firmware.FirmwareInterface):
    """Each update leads to the version after: v1, v2 ..."""

    _COMPONENTS = ("bios", "bmc")

    @steps.service_step(argsinfo=_UPDATES, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_UPDATES, idempotent=True)
    @steps.clean_step(priority=0, argsinfo=_UPDATES, requires_ramdisk=False)
    def update(self, task: Task, settings: list[dict[str, Any]]) -> None:
        _remember(task, fake_firmware=[*_recall(task, "fake_firmware", []), *settings])
        self.cache_firmware_components(task)

    @steps.verify_step(priority=10)
    def cache_firmware_components(self, task: Task) -> None:
        flashed = [update.get("component") for update in _recall(task, "fake_firmware", []) if isinstance(update, dict)]
        task.keep_firmware_components([self._component(name, flashed.count(name)) for name in self._COMPONENTS])

    def _component(self, name: str, updates: int) -> dict[str, Any]:
        return {
            "component": name,
            "initial_version": "v1",
            "current_version": f"v{1 + updates}",
            "last_version_flashed": f"v{1 + updates}" if updates else None,
        }


class FakeInspect(inspect.InspectInterface):
    """Finds a small machine, unless the properties say what there is."""

    def inspect_hardware(self, task: Task) -> None:
        found = {"cpus": 1, "cpu_arch": "x86_64", "memory_mb": 1024, "local_gb": 10}
        task.set(properties={**found, **task.node.properties})

    def clean_up(self, task: Task) -> None:
        pass


_ARRAYS = {"raid_config": {"description": "Object with logical_disks, a list of arrays.", "required": True}}


class FakeRAID(raid.RAIDInterface):
    """Has every array that it is told to build."""

    @steps.service_step(requires_ramdisk=False)
    @steps.clean_step(priority=0, requires_ramdisk=False)
    def create_configuration(self, task: Task) -> None:
        """Builds ``target_raid_config``."""
        self.validate_raid_config(task.node.target_raid_config)
        task.set(raid_config=task.node.target_raid_config)

    @steps.service_step(requires_ramdisk=False)
    @steps.clean_step(priority=0, requires_ramdisk=False)
    def delete_configuration(self, task: Task) -> None:
        task.set(raid_config={})

    @steps.service_step(argsinfo=_ARRAYS, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_ARRAYS, idempotent=True)
    def apply_configuration(self, task: Task, raid_config: dict[str, Any]) -> None:
        self.validate_raid_config(raid_config)
        task.set(raid_config=raid_config)


class FakeRescue(rescue.RescueInterface):
    def rescue(self, task: Task, password_hash: str) -> None:
        pass

    def unrescue(self, task: Task) -> None:
        pass

    def clean_up(self, task: Task) -> None:
        pass


_PAUSE = {"seconds": {"description": "How long the step takes. Default: 1.", "required": False}}
_FAIL = {"message": {"description": "What the step complains about.", "required": False}}


class FakeVendor(vendor.VendorInterface):
    @steps.service_step(abortable=True, argsinfo=_PAUSE, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_PAUSE, idempotent=True)
    @steps.clean_step(priority=0, abortable=True, argsinfo=_PAUSE, requires_ramdisk=False)
    def pause(self, task: Task, seconds: float = 1) -> results.Result:
        """Takes its time, without a thread."""
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
            raise errors.Invalid(field="seconds", value=seconds, allowed="A number of at least 0.")
        over = task.memory.setdefault("over", time.time() + seconds)
        left = over - time.time()
        return results.LookAgain(left) if left > 0 else results.DONE

    @steps.service_step(argsinfo=_FAIL, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_FAIL)
    @steps.clean_step(priority=0, argsinfo=_FAIL, requires_ramdisk=False)
    def fail(self, task: Task, message: str = "it was asked to") -> None:
        """Fails."""
        raise errors.StepFailed(f"the fake step failed: {message}")

    @node_method("POST", description="Compares bar with kazoo and keeps what came of it to itself.", tells=False)
    def second_method(self, task: Task, bar: str) -> bool:
        return bar == "kazoo"

    @node_method("POST", description="Whether bar is meow.")
    def third_method_sync(self, task: Task, bar: str) -> bool:
        return bar == "meow"

    @node_method("POST", description="Compares bar with woof, without the node's lock.", tells=False, exclusive=False)
    def fourth_method_shared_lock(self, task: Task, bar: str) -> bool:
        return bar == "woof"

    @node_method("POST", description="Notes in the conductor's log that it was called.", tells=False)
    def log_passthrough(self, task: Task, **arguments: Any) -> None:
        LOG.info("Node %s: log_passthrough was called with %s", task.node.uuid, ", ".join(sorted(arguments)) or "none")
