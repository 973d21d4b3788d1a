"""What may be sent to which conductor: the RPC methods, and the RPC version and features of each release.

``advance`` and ``process_allocation`` are wake-ups: the work is in the database already, the message only says *now*.
All other methods are calls, because they return something that only hardware or a loaded driver knows.
"""

import importlib.metadata
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors

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
    """Return ``"1.10"`` as ``(1, 10)``, which compares as versions do."""
    return tuple(int(part) for part in version.split("."))


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
    "0.3": Release(rpc="1.1"),
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
