"""VLANs: of the operator's purposes, and those that users may attach as VIFs."""

from oslo_config import cfg

from ingot.common import errors, networks
from ingot.common.conf.switch import FIRST_VLAN, LAST_VLAN
from ingot.drivers.interfaces.task import Task

_GROUP = "[switch]"
_BY_NUMBER = "vlan-"
_FALLBACK = "cleaning"
_OWN = frozenset(("provisioning", _FALLBACK, networks.TENANT))
"""Purposes that no other one's VLAN is used for."""


def read(task: Task, purpose: str) -> int:
    """Return the VLAN that a node has for a purpose.

    :raises Invalid: ``driver_info`` has none that a switch could have.
    :raises MissingParameter: nothing says it.
    """
    found = find(task, purpose)
    if found is None:
        option = f"{purpose}_vlan"
        raise errors.MissingParameter(where="network", names=f"{_GROUP} {option}, or driver_info.{option} of the node")
    return found


def find(task: Task, purpose: str) -> int | None:
    """Return the same, or None where nothing says it."""
    for name in (purpose,) if purpose in _OWN else (purpose, _FALLBACK):
        option = f"{name}_vlan"
        given = task.node.driver_info.get(option)
        if given is not None:
            return _parse(f"driver_info.{option}", given)
        if (configured := task.conf.switch[option]) is not None:
            return int(configured)
    return None


def _parse(field: str, given: object) -> int:
    text = "" if isinstance(given, bool) else str(given)
    if not text.isascii() or not text.isdecimal() or not FIRST_VLAN <= int(text) <= LAST_VLAN:
        raise errors.Invalid(field=field, value=given, allowed=f"A VLAN, from {FIRST_VLAN} to {LAST_VLAN}.")
    return int(text)


# Networks of users


def read_vif(conf: cfg.ConfigOpts, ident: str) -> int:
    """Return the VLAN of a VIF: of a network's name, or of ``vlan-NUMBER``.

    :raises Invalid: it is none that the operator lets users have.
    """
    named = conf.switch.tenant_networks
    if ident in named:
        return _parse(f"{_GROUP} tenant_networks {ident}", named[ident])
    number = ident.removeprefix(_BY_NUMBER)
    if number != ident and number.isascii() and number.isdecimal():
        if any(first <= int(number) <= last for first, last in _list_ranges(conf)):
            return int(number)
    raise errors.Invalid(field="VIF", value=ident, allowed=_describe_allowed(conf))


def _describe_allowed(conf: cfg.ConfigOpts) -> str:
    names = ", ".join(sorted(conf.switch.tenant_networks)) or "none"
    ranges = ", ".join(conf.switch.tenant_vlans) or "none"
    return (
        f"With the network interface switch a VIF is a network of {_GROUP} tenant_networks ({names}), or "
        f"{_BY_NUMBER}NUMBER with a VLAN of {_GROUP} tenant_vlans ({ranges})."
    )


def _list_ranges(conf: cfg.ConfigOpts) -> list[tuple[int, int]]:
    ranges = []
    for given in conf.switch.tenant_vlans:
        first, dash, last = (part.strip() for part in given.partition("-"))
        ranges.append(
            (_parse(f"{_GROUP} tenant_vlans", first), _parse(f"{_GROUP} tenant_vlans", last if dash else first))
        )
    return ranges


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse networks of users that no switch could have, or on which agents run.

    :raises ConfigurationError: the first of them.
    """
    try:
        named = [(vlan, vlan) for vlan in (read_vif(conf, name) for name in conf.switch.tenant_networks)]
        offered = [*named, *_list_ranges(conf)]
    except errors.Invalid as exc:
        raise errors.ConfigurationError(exc.message) from exc
    for option in (f"{purpose}_vlan" for purpose in networks.PURPOSES):
        own = conf.switch[option]
        if own is not None and any(first <= own <= last for first, last in offered):
            raise errors.ConfigurationError(
                f"VLAN {own} is {_GROUP} {option}, on which agents run, so users must not have it: it is in {_GROUP} "
                "tenant_networks or tenant_vlans, too."
            )
