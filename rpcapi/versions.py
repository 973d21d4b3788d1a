"""What may be sent to which conductor: the RPC methods, and the RPC version and features of each release.

A wake-up says *now*: the work is in the database already. ``wake_up`` carries several of them in one message. All other
methods are calls, because they return something that only hardware or a loaded driver knows.
"""

import importlib.metadata
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors

RPC_VERSION = "1.3"
"""What this release serves: major for breaks, minor for additions. Add a method, raise the minor."""


METHODS: dict[str, str] = {
    "advance": "1.0",
    "process_allocation": "1.1",
    "wake_up": "1.2",
    **dict.fromkeys(("get_boot_device", "set_boot_device", "get_supported_boot_devices"), "1.0"),
    **dict.fromkeys(("get_driver_properties", "get_steps", "validate_deploy", "validate_node"), "1.0"),
    **dict.fromkeys(("get_plan", "validate_flow", "get_logical_disk_properties"), "1.1"),
    **dict.fromkeys(("get_console", "set_console"), "1.1"),
    **dict.fromkeys(("get_console_log", "open_console"), "1.3"),
    **dict.fromkeys(("set_boot_mode", "set_secure_boot", "inject_nmi"), "1.1"),
    **dict.fromkeys(("get_indicators", "get_indicator_state", "set_indicator_state"), "1.1"),
    **dict.fromkeys(("get_virtual_media", "attach_virtual_media", "detach_virtual_media"), "1.1"),
    **dict.fromkeys(("list_vifs", "attach_vif", "detach_vif"), "1.1"),
    **dict.fromkeys(("get_driver_methods", "call_driver_method", "get_node_methods", "call_node_method"), "1.1"),
    **dict.fromkeys(("get_load", "get_offered_steps", "get_sensors", "change_port"), "1.3"),
}
"""Each RPC method with the RPC version that brought it; a client capped below it does not send it."""

WAKEUPS = {"advance": "node_uuid", "process_allocation": "allocation_uuid"}
"""Each wake-up with the argument that names what has work."""

QUESTIONS = frozenset(method for method in METHODS if method.startswith(("get_", "list_", "validate_")))
"""Those that change nothing."""


def version_tuple(version: str) -> tuple[int, ...]:
    """Return ``"1.10"`` as ``(1, 10)``, which compares as versions do."""
    return tuple(int(part) for part in version.split("."))


def has_method(version: str, method: str) -> bool:
    """Return whether who serves an RPC version knows a method."""
    return version_tuple(METHODS[method]) <= version_tuple(version)


class Release(NamedTuple):
    """What a conductor of a release understands.

    :param rpc: its RPC version.
    :param deploy_steps: whether deploy steps and templates may be used while pinned to it (specifications 001, 003).
    """

    rpc: str
    deploy_steps: bool = True


# The last three releases: ``[DEFAULT] pin_release_version`` names one. A rolling upgrade goes from one to the next.
RELEASES: dict[str, Release] = {
    # What conductors did before there were steps. It was never published: it is for operators who must keep to that
    # until all of their deploy interfaces and ramdisks can do more.
    "0.0": Release(rpc="1.0", deploy_steps=False),
    "0.2": Release(rpc="1.1"),
    "0.3": Release(rpc="1.3"),
}


def current_version() -> str:
    """Return the version of the installed distribution, e.g. ``0.3.0``."""
    return importlib.metadata.version("ingot")


def pinned_release(conf: cfg.ConfigOpts) -> Release | None:
    """Return the release that the operator pinned, or None.

    :raises ConfigurationError: this release does not know the pinned one.
    """
    name = conf.pin_release_version
    if name is None:
        return None
    if name not in RELEASES:
        raise errors.ConfigurationError(
            option="pin_release_version", value=name, allowed=f"Known releases: {', '.join(sorted(RELEASES))}."
        )
    return RELEASES[name]


def uses_deploy_steps(conf: cfg.ConfigOpts) -> bool:
    """Return whether deploy steps and templates are used; not while pinned to a release before them."""
    release = pinned_release(conf)
    return release is None or release.deploy_steps
