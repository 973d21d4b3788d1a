"""What an inspection is about to make of a node. Nothing is written before all hooks and rules have run."""

import copy
from collections.abc import Mapping

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.task.task_manager import Task
from ingot.db import inventory, models, outbox

_JSON = (dict,)
_TEXT = (str, type(None))

Columns = Mapping[str, tuple[type, ...]]

NODE: Columns = {
    "automated_clean": (bool, type(None)),
    "description": _TEXT,
    "driver_info": _JSON,
    "extra": _JSON,
    "instance_info": _JSON,
    "lessee": _TEXT,
    "owner": _TEXT,
    "properties": _JSON,
    "resource_class": _TEXT,
}
"""The columns of a node that hooks and rules may change, with their types."""

PORT: Columns = {
    "category": _TEXT,
    "description": _TEXT,
    "extra": _JSON,
    "is_smartnic": (bool,),
    "local_link_connection": _JSON,
    "physical_network": _TEXT,
    "pxe_enabled": (bool,),
    "vendor": _TEXT,
}
"""The same of a port."""

_SHOWN = (*NODE, "uuid", "name", "driver", "conductor_group", "power_state", "chassis_id", "instance_uuid", "boot_mode")


class Draft:
    """
    :ivar node: columns of the node; those of :data:`NODE` may be changed.
    :ivar ports: columns of its ports; new ones have no id.
    :ivar traits: its traits.
    :ivar inventory: what was found. It stays as it is.
    :ivar plugin_data: what else the ramdisk sent, and what hooks and rules add to it.
    :ivar serials_before: the disks that the inspection before has found; None if there was none.
    """

    def __init__(self, task: Task, found: models.NodeInventory) -> None:
        self.task = task
        # Secrets are as they are kept: rules neither see nor need them, and none is decrypted to be written again.
        self.node: Json = copy.deepcopy({name: vars(task.node)[name] for name in _SHOWN})
        self.ports: list[Json] = [copy.deepcopy(port.as_dict()) for port in task.ports]
        self.traits = set(task.traits)
        self._traits_before = frozenset(self.traits)
        self.inventory: Json = found.inventory
        self.plugin_data: Json = copy.deepcopy(found.plugin_data)
        serials = task.node.request.get("serials_before")
        self.serials_before: list[str] | None = serials if isinstance(serials, list) else None
        self._removed: list[int] = []
        self._before = {port["id"]: copy.deepcopy(port) for port in self.ports}

    def hand_over(self) -> None:
        """Set everything, for the write that ends the step."""
        before = self.task.node
        self.task.set(**{name: self.node[name] for name in NODE if self.node[name] != vars(before)[name]})
        written = []
        for port in self.ports:
            old = self._before.get(port.get("id"))
            if old is None:
                written.append(port)
            elif port != old:
                written.append({"id": port["id"]} | {name: port[name] for name in PORT if port[name] != old[name]})
        changed = {"ports": bool(written or self._removed), "traits": self.traits != self._traits_before}
        if fields := [name for name, is_changed in changed.items() if is_changed]:
            self.task.add_event(outbox.build_node_event(*fields))
        self.task.add_extra_write(inventory.write_plugin_data(before.id, self.plugin_data))
        self.task.add_extra_write(inventory.write_conclusion(before.id, written, self._removed, self.traits))

    def remove_port(self, port: Json) -> None:
        """Remove one of the ports."""
        self.ports.remove(port)
        if "id" in port:
            self._removed.append(port["id"])

    def port(self, ident: str) -> Json:
        """Return a port by its MAC address or UUID.

        :raises Invalid: the node has none.
        """
        key = str(ident).lower()
        for port in self.ports:
            if key in (port["address"], port.get("uuid")):
                return port
        known = ", ".join(port["address"] for port in self.ports) or "none"
        raise errors.Invalid(field="port_id", value=ident, allowed=f"The ports of the node are: {known}.")

    def set_capability(self, name: str, value: str | None) -> None:
        """Set one of the node's capabilities, whichever form they have; None removes it."""
        given = self.node["properties"].get("capabilities") or ""
        known = dict(given) if isinstance(given, dict) else _parse_capabilities(str(given))
        if value is not None:
            known[name] = value
        elif known.pop(name, None) is None:
            return
        self.node["properties"]["capabilities"] = ",".join(f"{one}:{known[one]}" for one in known)


def _parse_capabilities(text: str) -> dict[str, str]:
    """Return the pairs of ``name:value,name:value``; what is no pair is left out."""
    pairs = (part.partition(":") for part in text.split(","))
    return {name.strip(): value for name, colon, value in pairs if name.strip() and colon}
