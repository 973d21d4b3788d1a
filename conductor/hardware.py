"""What users ask of one machine besides flows and power: each is done while they wait, and they get the error.

All functions take a task; those that change something need the node's lock.
"""

from typing import TypeVar, cast

from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.conductor import validation
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces import vendor
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.console import ConsoleInterface
from ingot.drivers.interfaces.management import BootDevice, Indicator, ManagementInterface
from ingot.drivers.interfaces.network import NetworkInterface

_BUSY = states.WORKING | states.WAITING
"""While a flow is under way in these states, how the machine boots is the flow's business (measured contract)."""


AnyInterface = TypeVar("AnyInterface", bound=BaseInterface)


def _get_valid(task: Task, contract: type[AnyInterface]) -> AnyInterface:
    """Return one of the node's interfaces, with everything it needs.

    :raises Invalid: it has none on this conductor, or the node lacks something that it needs.
    """
    interface = cast(AnyInterface, validation.require_interface(task, contract.interface_type))
    interface.validate(task)
    return interface


# Console


def get_console(task: Task) -> Json:
    """Return whether the console is on and, if so, where it is."""
    console = _get_valid(task, ConsoleInterface)
    enabled = task.node.console_enabled
    return {"console_enabled": enabled, "console_info": console.get_console(task) if enabled else None}


def set_console(task: Task, enabled: bool) -> None:
    """Start or stop the console; one that should run already is started again, as it may have died."""
    console = _get_valid(task, ConsoleInterface)
    (console.start_console if enabled else console.stop_console)(task)
    task.set(console_enabled=enabled)


# How the machine boots


def get_boot_device(task: Task) -> BootDevice:
    return _get_management(task).get_boot_device(task)


def get_supported_boot_devices(task: Task) -> list[str]:
    return _get_management(task).get_supported_boot_devices(task)


def _get_management(task: Task) -> ManagementInterface:
    return cast(ManagementInterface, validation.require_interface(task, "management"))


def set_boot_device(task: Task, device: str, persistent: bool) -> None:
    _get_valid(task, ManagementInterface).set_boot_device(task, device, persistent)


def set_boot_mode(task: Task, mode: str) -> None:
    """
    :raises NodeBusy: a flow is under way.
    """
    _check_no_flow(task, "given another boot mode")
    _get_valid(task, ManagementInterface).set_boot_mode(task, mode)
    task.set(boot_mode=mode)


def set_secure_boot(task: Task, enabled: bool) -> None:
    """
    :raises NodeBusy: a flow is under way.
    """
    _check_no_flow(task, "given another secure boot state")
    _get_valid(task, ManagementInterface).set_secure_boot(task, enabled)
    task.set(secure_boot=enabled)


def _check_no_flow(task: Task, done: str) -> None:
    state = task.node.provision_state
    if state in _BUSY:
        allowed = ", ".join(sorted(states.ALL - _BUSY))
        raise errors.NodeBusy(node=task.node.uuid, done=done, state=state, allowed=allowed)


def inject_nmi(task: Task) -> None:
    _get_valid(task, ManagementInterface).inject_nmi(task)


# Indicators


def get_indicators(task: Task) -> list[Json]:
    """Return the lights of the machine: component, name, readonly, states."""
    return [one._asdict() for one in _get_valid(task, ManagementInterface).get_supported_indicators(task)]


def get_indicator_state(task: Task, component: str, name: str) -> str:
    """
    :raises NotFound: the machine has no such light.
    """
    management = _get_valid(task, ManagementInterface)
    return management.get_indicator_state(task, _find_indicator(task, component, name))


def set_indicator_state(task: Task, component: str, name: str, state: str) -> None:
    """
    :raises NotFound: the machine has no such light.
    :raises Invalid: it can only be read, or does not know the state.
    """
    management = _get_valid(task, ManagementInterface)
    indicator = _find_indicator(task, component, name)
    if indicator.readonly:
        raise errors.Invalid(f"Indicator {name}@{component} of node {task.node.uuid} can be read only, not set.")
    if state not in indicator.states:
        raise errors.Invalid(field="state", value=state, allowed=f"It can be: {', '.join(indicator.states)}.")
    management.set_indicator_state(task, indicator, state)


def _find_indicator(task: Task, component: str, name: str) -> Indicator:
    known = _get_valid(task, ManagementInterface).get_supported_indicators(task)
    for indicator in known:
        if (indicator.component, indicator.name) == (component, name):
            return indicator
    names = ", ".join(f"{one.name}@{one.component}" for one in known) or "none"
    raise errors.NotFound(f"Node {task.node.uuid} has no indicator {name[:80]}@{component[:80]}; it has: {names}.")


# Virtual media


def get_virtual_media(task: Task) -> list[Json]:
    return _get_valid(task, ManagementInterface).get_virtual_media(task)


def attach_virtual_media(task: Task, device_type: str, image_url: str, source: str | None) -> None:
    _get_valid(task, ManagementInterface).attach_virtual_media(task, device_type, image_url, source)


def detach_virtual_media(task: Task, device_types: list[str]) -> None:
    _get_valid(task, ManagementInterface).detach_virtual_media(task, device_types)


# Networks of the user


def list_vifs(task: Task) -> list[Json]:
    return _get_valid(task, NetworkInterface).list_vifs(task)


def attach_vif(task: Task, vif: Json) -> None:
    _get_valid(task, NetworkInterface).attach_vif(task, vif)


def detach_vif(task: Task, vif_id: str) -> None:
    _get_valid(task, NetworkInterface).detach_vif(task, vif_id)


# What only a vendor's machines can do


def list_node_methods(task: Task) -> dict[str, dict[str, object]]:
    """Return the methods of the node's vendor interface that users may call by name."""
    return vendor.describe_node_methods(validation.require_interface(task, "vendor"))
