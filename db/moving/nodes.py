"""Nodes of Ironic as those of Ingot, and back: states, agents, config drives, interfaces.

Ironic keeps in ``driver_internal_info`` what Ingot has columns for, and much that only Ironic's own code understands.
Of that the agent's token is taken over. What belongs to Ironic stays there, for the way back.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ingot.common import interfaces, states
from ingot.db.conductors import EnabledInterface
from ingot.db.moving.report import Report
from ingot.db.moving.schema import Kept

Row = dict[str, Any]

Replacements = Mapping[tuple[str, str], str]
"""By field of a node and former value, the value that it gets."""

REPLACEABLE = ("driver", *interfaces.FIELDS)
"""Fields that an operator may have replaced."""


class Offers(NamedTuple):
    """What is enabled here.

    :param drivers: hardware types and classic drivers.
    :param interfaces: for hardware types: type, field of the node, name of the interface.
    """

    drivers: frozenset[str]
    interfaces: frozenset[tuple[str, str, str]]

    @classmethod
    def of(cls, enabled: Iterable[EnabledInterface], classic: Iterable[str]) -> "Offers":
        """Return what a conductor of this configuration would register."""
        found = frozenset(
            (one.hardware_type, interfaces.FIELD[one.interface_type], one.interface_name) for one in enabled
        )
        return cls(frozenset((*(name for name, _field, _interface in found), *classic)), found)

    def list_lacking(self, row: Row) -> Iterator[tuple[str, str]]:
        """Yield what a node needs that is not here: the kind of the finding, and its detail."""
        driver = row["driver"]
        if driver not in self.drivers:
            yield "driver", f"driver {driver}{interfaces.advise(driver)}"
        elif any(offer[0] == driver for offer in self.interfaces):
            for field in interfaces.FIELDS:
                if row[field] is not None and (driver, field, row[field]) not in self.interfaces:
                    yield "interface", f"{field} {row[field]} of {driver}"


_NO_STATE = states.AVAILABLE
"""What an empty provision_state of Ironic's old days means."""

_AGENT = {
    "agent_secret_token": "agent_token",
    "agent_version": "agent_version",
    "agent_last_heartbeat": "agent_last_heartbeat",
}
"""By key of Ironic's internal info, the column here. The address and certificate come with the next heartbeat."""

_OF_FLOWS = ("steps", "step_index", "user_steps", "step_manifest")
_STEPS = ("clean_step", "deploy_step", "service_step")

_INTERRUPTED = (
    "This node was in state {before} when it was moved from {place}. What was under way there does not go on. The "
    "machine was not touched. Request it again."
)

_MOVED_STATES = states.WORKING | states.WAITING | states.HELD

_WITH_INSTANCE = frozenset(
    (states.ACTIVE, states.RESCUE, states.RESCUEFAIL, states.UNRESCUEFAIL, states.SERVICEFAIL, states.ERROR)
)
"""States in which a machine may run what was deployed."""


def settle(state: str) -> str:
    """Return the state that a node enters which no service works on any more: that of a failure or an abort."""
    if state not in states.ALL:
        return states.ERROR
    outcomes = states.TRANSITIONS[state]
    return outcomes.get("fail") or outcomes["abort"] if state in _MOVED_STATES else state


def settle_row(row: Row, place: str) -> Row:
    """Return what changes of a node that is in the middle of something.

    :param place: the name of the service that it was in.
    """
    before = row["provision_state"]
    after = settle(before)
    if after == before:
        return {}
    reason = _INTERRUPTED.format(before=before, place=place)
    changes: Row = {
        "provision_state": after,
        "target_provision_state": states.TARGETS.get(after),
        "last_error": reason,
        "inspection_started_at": None,
        **{step: {} for step in _STEPS},
    }
    if fault := states.FAULTS.get(after):
        changes |= {"maintenance": True, "fault": fault, "maintenance_reason": reason}
    return changes


def take(theirs: Kept, row: Row, report: Report, replaced: Replacements, offers: Offers) -> Row:
    """Return a node as Ingot keeps it.

    :param theirs: as Ironic has it.
    :param row: the columns that both have.
    :param report: gets what does not carry over.
    """
    info = theirs["driver_internal_info"]
    row |= {"driver_internal_info": {}, "provision_state": row["provision_state"] or _NO_STATE, **_take_agent(info)}
    # The first reading takes what it finds. A state that is not current any more would be forced upon the machine.
    row |= {"power_state": None, "target_power_state": None, "console_enabled": False}
    _note(theirs, row, report)
    row |= settle_row(row, "Ironic")
    for name in REPLACEABLE:
        former = row[name]
        if (new := replaced.get((name, former))) is not None:
            report.add("replaced", f"{name} {former} by {new}", row["uuid"])
            row[name] = new
    for kind, detail in offers.list_lacking(row):
        report.add(kind, detail, row["uuid"])
    row["instance_info"], row["configdrive"] = _take_drive(row, report)
    return row


def find_network_boot(theirs: Kept, row: Row, has_volume: bool) -> str | None:
    """Return what a machine boots from the network at each start, a ``volume`` or an ``image``; None: its disk.

    :param theirs: as Ironic has it.
    :param row: as Ingot keeps it.
    :param has_volume: whether it has a volume target to boot from.
    """
    if row["provision_state"] not in _WITH_INSTANCE:
        return None
    if has_volume and theirs["storage_interface"] not in (None, "noop"):
        return "volume"
    return "image" if theirs["deploy_interface"] == "ramdisk" else None


def _note(theirs: Kept, row: Row, report: Report) -> None:
    """Report what of a node does not carry over."""
    uuid, before = row["uuid"], row["provision_state"]
    if (after := settle(before)) != before:
        report.add("state", f"{before} becomes {after}", uuid)
    if row["agent_token"] is not None:
        report.add("agent", f"state {before}", uuid)
    if theirs["target_power_state"] is not None:
        report.add("power change", theirs["target_power_state"], uuid)
    if theirs["reservation"] is not None:
        report.add("lock", theirs["reservation"], uuid)
    if theirs["console_enabled"]:
        report.add("console", f"console interface {row['console_interface']}", uuid)


def _take_agent(info: Mapping[str, Any]) -> Row:
    """Return the columns of the agent; without a token there is none that could be trusted."""
    found: Row = {column: info.get(key) for key, column in _AGENT.items()}
    if found["agent_token"] is None:
        return dict.fromkeys(found)
    try:
        found["agent_last_heartbeat"] = datetime.datetime.fromisoformat(found["agent_last_heartbeat"]).replace(
            tzinfo=None
        )
    except (TypeError, ValueError):
        found["agent_last_heartbeat"] = None
    return found


def _take_drive(row: Row, report: Report) -> tuple[Row, str | None]:
    """Return ``instance_info`` without the config drive, and the config drive."""
    info = dict(row["instance_info"])
    drive = info.pop("configdrive", None)
    if _is_link(drive):
        report.add("config drive", "link", row["uuid"])
        drive = None
    return info, drive


def _is_link(drive: object) -> bool:
    """Return whether a config drive is elsewhere, and only Ironic gets at it."""
    return drive is not None and (not isinstance(drive, str) or "://" in drive)


def give(row: Row, theirs: Kept | None, replaced: Replacements) -> Row:
    """Return a node as Ironic keeps it.

    :param row: as Ingot has it, by names of columns that both have, with the agent's columns and the config drive.
    :param theirs: as Ironic has it, if it has it.
    """
    info = dict(theirs["driver_internal_info"] if theirs else {})
    own = theirs["provision_state"] if theirs else None
    row |= settle_row(row, "Ingot")
    if row["provision_state"] != settle(own or _NO_STATE):
        info = {key: value for key, value in info.items() if not key.endswith(_OF_FLOWS)}
    row["driver_internal_info"] = _give_agent(row, info)
    if drive := row.pop("configdrive") or _find_link(row, theirs):
        row["instance_info"] = {**row["instance_info"], "configdrive": drive}
    if theirs:
        row |= _restore(row, theirs, replaced)
    return row | {"reservation": None, "target_power_state": None, "console_enabled": False}


def _find_link(row: Row, theirs: Kept | None) -> object:
    """Return the config drive that the import has left in Ironic, if the instance is the same."""
    if theirs is None or theirs["instance_uuid"] != row["instance_uuid"]:
        return None
    info = dict(theirs["instance_info"])
    drive = info.pop("configdrive", None)
    return drive if _is_link(drive) and info == row["instance_info"] else None


def _give_agent(row: Row, info: Row) -> Row:
    heartbeat = row.pop("agent_last_heartbeat")
    columns = {name: row.pop(name) for name in ("agent_token", "agent_version", "agent_url")}
    kept = info
    if columns["agent_token"] != info.get("agent_secret_token"):  # what else Ironic knows was of another agent
        kept = {key: value for key, value in info.items() if not key.startswith("agent_")}
    if columns["agent_token"] is None:
        return kept
    known = {"agent_secret_token": columns.pop("agent_token"), **columns}
    known["agent_last_heartbeat"] = heartbeat.isoformat() if heartbeat else None
    return kept | {key: value for key, value in known.items() if value is not None}


def _restore(row: Row, theirs: Kept, replaced: Replacements) -> Row:
    """Return what Ironic's node keeps: what was replaced on the way here, and what was never read here."""
    kept = {
        name: theirs[name]
        for name in REPLACEABLE
        if replaced.get((name, theirs[name])) is not None and replaced[name, theirs[name]] == row[name]
    }
    return kept if row["power_state"] is not None else {**kept, "power_state": theirs["power_state"]}
