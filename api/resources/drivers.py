"""Drivers: the hardware types and classic drivers that online conductors have enabled (specification 004)."""

import itertools
from typing import Any

from ingot.api.nodes import composition
from ingot.api.web import collection, fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors, interfaces
from ingot.db import conductors, models

TYPES = ("classic", "dynamic")
"""Hardware types are dynamic: nodes choose their interfaces. A classic driver is a fixed composition."""

# The types of interfaces that are younger than the details of hardware types.
_TYPE_SINCE = {"storage": 33, "rescue": 38, "bios": 40, "firmware": 86}

_SHOWN = {name: (f"default_{field}", f"enabled_{field}s") for name, field in interfaces.FIELD.items()}
"""By interface type, the fields that show the calculated default and all that are enabled."""


class Driver(models.Record):
    """What online conductors have enabled under a name. The fields of interfaces are None for a classic driver."""

    name: str
    type: str
    hosts: list[str]


TABLE = tables.Table(
    "driver",
    Field("name", brief=True),
    Field("hosts", brief=True),
    tables.links_field("drivers", "name"),
    Field(
        "properties",
        14,
        brief=True,
        compute=lambda driver, call: tables.build_links(call, f"drivers/{driver.name}/properties"),
        needs=("name",),
    ),
    Field("type", 30, brief=True),
    *(Field(field, _TYPE_SINCE.get(name, 30)) for name, pair in _SHOWN.items() for field in pair),
)

_ONE = collection.One(TABLE)

_FIELDS = operations.FIELDS._replace(since=77)


@operation(
    Param("type", operations.build_choice(TYPES), 30),
    operations.DETAIL._replace(since=30),
    _FIELDS,
    answer=Answer(shows=collection.Page("drivers", _ONE)),
)
def index(call: Call) -> Reply:
    selection = collection.read_selection(call, TABLE)
    only = call.query.get("type")
    found = [driver for driver in _list_enabled(call) if only in (None, driver.type)]
    return Reply({"drivers": [selection.render(driver, call) for driver in found]})


@operation(_FIELDS, answer=Answer(shows=_ONE))
def show(call: Call, name: str) -> Reply:
    selection = TABLE.select(call.minor, call.query.get("fields"))
    return Reply(selection.render(_read(call, name), call))


_DESCRIBED = Answer(shows=Plain({"type": "object", "additionalProperties": fields.TEXT_SCHEMA}))
"""Something by name, each with what it is."""


@operation(answer=_DESCRIBED)
def properties(call: Call, name: str) -> Reply:
    return Reply(ask(call, name, "get_driver_properties", hardware_type=name))


@operation(answer=_DESCRIBED)
def logical_disk_properties(call: Call, name: str) -> Reply:
    """Describe the keys of a logical disk in a RAID configuration."""
    return Reply(ask(call, name, "get_logical_disk_properties", driver=name))


def ask(call: Call, name: str, method: str, **arguments: object) -> Any:
    """Ask a conductor that has a driver enabled."""
    return call.client.call_host(call.ctx, _read(call, name).hosts[0], method, **arguments)


def _read(call: Call, name: str) -> Driver:
    """Return a driver that some online conductor has enabled.

    :raises ServiceUnavailable: the conductors that have it are offline at the moment.
    :raises NotFound: none has it.
    """
    found = _list_enabled(call, name)
    if not found:
        conductors.raise_if_lately_online(call.db, name)
        raise errors.NotFound(noun="Driver", ident=name[:80])
    return found[0]


def _list_enabled(call: Call, only: str | None = None) -> list[Driver]:
    """Return the enabled drivers, sorted by name: two statements.

    A name that is a hardware type on one conductor and a classic driver on another counts as the hardware type.
    """
    timeout = call.conf.conductor.heartbeat_timeout
    classic: dict[str, set[str]] = {}
    for hostname, _group, name in conductors.classic_drivers(call.db, timeout):
        if only in (None, name):
            classic.setdefault(name, set()).add(hostname)
    nothing = dict.fromkeys(itertools.chain(*_SHOWN.values()))
    found = {name: Driver(name=name, type="classic", hosts=sorted(on), **nothing) for name, on in classic.items()}
    by_type: dict[str, list[conductors.InterfaceOnline]] = {}
    for row in conductors.enabled_interfaces(call.db, timeout, None if only is None else [only]):
        by_type.setdefault(row.hardware_type, []).append(row)
    for name, rows in by_type.items():
        offer = composition.build_offer(rows)
        shown: dict[str, object] = {}
        for interface_type, (default, enabled) in _SHOWN.items():
            shown |= {default: offer.defaults.get(interface_type), enabled: offer.enabled.get(interface_type, [])}
        found[name] = Driver(name=name, type="dynamic", hosts=sorted({row.hostname for row in rows}), **shown)
    return [found[name] for name in sorted(found)]
