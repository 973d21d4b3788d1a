"""The table of RPC methods: shared by the client, which may send them, and the endpoint, which must serve them.

``advance`` and ``process_allocation`` are doorbells: the work is in the database already, the message only says *look
now*. All other methods are calls, because they return something that only hardware or a loaded driver knows.
"""

from typing import NamedTuple

RPC_VERSION = "1.1"
"""What this release serves: major for breaks, minor for additions. Add a method, raise the minor."""


class Method(NamedTuple):
    """An RPC method.

    :param since: RPC version that brought it; a client capped below it does not send it.
    :param answers: whether it is a call (waits for the result) or a cast.
    """

    since: str
    answers: bool = True


METHODS: dict[str, Method] = {
    "advance": Method("1.0", answers=False),
    "attach_vif": Method("1.1"),
    "attach_virtual_media": Method("1.1"),
    "call_driver_method": Method("1.1"),
    "call_node_method": Method("1.1"),
    "detach_vif": Method("1.1"),
    "detach_virtual_media": Method("1.1"),
    "get_boot_device": Method("1.0"),
    "get_console": Method("1.1"),
    "get_driver_methods": Method("1.1"),
    "get_driver_properties": Method("1.0"),
    "get_indicator_state": Method("1.1"),
    "get_indicators": Method("1.1"),
    "get_logical_disk_properties": Method("1.1"),
    "get_node_methods": Method("1.1"),
    "get_plan": Method("1.1"),
    "get_steps": Method("1.0"),
    "get_supported_boot_devices": Method("1.0"),
    "get_virtual_media": Method("1.1"),
    "inject_nmi": Method("1.1"),
    "list_vifs": Method("1.1"),
    "process_allocation": Method("1.1", answers=False),
    "set_boot_device": Method("1.0"),
    "set_boot_mode": Method("1.1"),
    "set_console": Method("1.1"),
    "set_indicator_state": Method("1.1"),
    "set_secure_boot": Method("1.1"),
    "validate_deploy": Method("1.0"),
    "validate_flow": Method("1.1"),
    "validate_node": Method("1.0"),
}


def version_tuple(version: str) -> tuple[int, ...]:
    """``"1.10"`` as ``(1, 10)``, which compares as versions do."""
    return tuple(int(part) for part in version.split("."))
