"""What users ask of one machine beside flows and power: each is done while they wait, and what goes wrong is told them.

All functions take a task; those that change something need the node's lock.
"""

from typing import Any

from ingot.common import errors, states
from ingot.conductor import validation
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces import vendor
from ingot.drivers.interfaces.management import Indicator

_MOVING = states.WORKING | states.WAITING
"""While a flow is under way in these states, how the machine boots is the flow's business (measured contract)."""


def _valid(task: Task, kind: str) -> Any:
    """The node's interface of a kind, with everything it needs.

    :raises Invalid: it has none on this conductor, or the node lacks something that it needs.
    """
    interface = validation.interface(task, kind)
    interface.validate(task)
    return interface


# Console


def get_console(task: Task) -> dict[str, Any]:
    """Whether the console is on and, if so, where it is."""
    console = _valid(task, "console")
    enabled = task.node.console_enabled
    return {"console_enabled": enabled, "console_info": console.get_console(task) if enabled else None}


def set_console(task: Task, enabled: bool) -> None:
    """Starts or stops the console; one that should run already is started again, as it may have died."""
    console = _valid(task, "console")
    (console.start_console if enabled else console.stop_console)(task)
    task.set(console_enabled=enabled)


# How the machine boots


def set_boot_mode(task: Task, mode: str) -> None:
    """
    :raises NodeBusy: a flow is under way.
    """
    _refuse_moving(task, "given another boot mode")
    _valid(task, "management").set_boot_mode(task, mode)
    task.set(boot_mode=mode)


def set_secure_boot(task: Task, enabled: bool) -> None:
    """
    :raises NodeBusy: a flow is under way.
    """
    _refuse_moving(task, "given another secure boot state")
    _valid(task, "management").set_secure_boot(task, enabled)
    task.set(secure_boot=enabled)


def _refuse_moving(task: Task, done: str) -> None:
    state = task.node.provision_state
    if state in _MOVING:
        allowed = ", ".join(sorted(states.ALL - _MOVING))
        raise errors.NodeBusy(node=task.node.uuid, done=done, state=state, allowed=allowed)


def inject_nmi(task: Task) -> None:
    _valid(task, "management").inject_nmi(task)


# Indicators


def get_indicators(task: Task) -> list[dict[str, Any]]:
    """The lights of the machine: component, name, readonly, states."""
    return [one._asdict() for one in _valid(task, "management").get_supported_indicators(task)]


def get_indicator_state(task: Task, component: str, name: str) -> str:
    """
    :raises NotFound: the machine has no such light.
    """
    management = _valid(task, "management")
    state: str = management.get_indicator_state(task, _indicator(task, component, name))
    return state


def set_indicator_state(task: Task, component: str, name: str, state: str) -> None:
    """
    :raises NotFound: the machine has no such light.
    :raises Invalid: it can only be looked at, or does not know the state.
    """
    management = _valid(task, "management")
    indicator = _indicator(task, component, name)
    if indicator.readonly:
        raise errors.Invalid(f"Indicator {name}@{component} of node {task.node.uuid} can be read only, not set.")
    if state not in indicator.states:
        raise errors.Invalid(field="state", value=state, allowed=f"It can be: {', '.join(indicator.states)}.")
    management.set_indicator_state(task, indicator, state)


def _indicator(task: Task, component: str, name: str) -> Indicator:
    known: list[Indicator] = _valid(task, "management").get_supported_indicators(task)
    for indicator in known:
        if (indicator.component, indicator.name) == (component, name):
            return indicator
    names = ", ".join(f"{one.name}@{one.component}" for one in known) or "none"
    raise errors.NotFound(f"Node {task.node.uuid} has no indicator {name[:80]}@{component[:80]}; it has: {names}.")


# Virtual media


def get_virtual_media(task: Task) -> list[dict[str, Any]]:
    media: list[dict[str, Any]] = _valid(task, "management").get_virtual_media(task)
    return media


def attach_virtual_media(task: Task, device_type: str, image_url: str, source: str | None) -> None:
    _valid(task, "management").attach_virtual_media(task, device_type, image_url, source)


def detach_virtual_media(task: Task, device_types: list[str]) -> None:
    _valid(task, "management").detach_virtual_media(task, device_types)


# Networks of the user


def list_vifs(task: Task) -> list[dict[str, Any]]:
    vifs: list[dict[str, Any]] = _valid(task, "network").list_vifs(task)
    return vifs


def attach_vif(task: Task, vif: dict[str, Any]) -> None:
    _valid(task, "network").attach_vif(task, vif)


def detach_vif(task: Task, vif_id: str) -> None:
    _valid(task, "network").detach_vif(task, vif_id)


# What only a vendor's machines can do


def node_methods(task: Task) -> dict[str, dict[str, Any]]:
    """The methods of the node's vendor interface that users may call by name."""
    return vendor.describe_node_methods(validation.interface(task, "vendor"))


def node_method(task: Task, asked: vendor.VendorCall) -> vendor.VendorMethod:
    """What is declared of a method that is asked for; see ``vendor.find_node_method``."""
    return vendor.find_node_method(validation.interface(task, "vendor"), task, asked)


def call_node_method(task: Task, asked: vendor.VendorCall) -> Any:
    """See ``vendor.call_node_method``."""
    return vendor.call_node_method(validation.interface(task, "vendor"), task, asked)
