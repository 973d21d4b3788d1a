"""What an inspection is about to make of a node. Nothing is written before all hooks and rules have run."""

import copy
import re

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.task.task_manager import Task
from ingot.db import inventory, models

_JSON = (dict,)
_TEXT = (str, type(None))

NODE: dict[str, tuple[type, ...]] = {
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

PORT: dict[str, tuple[type, ...]] = {
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

Tree = Json


class Draft:
    """
    :ivar node: columns of the node; those of :data:`NODE` may be changed.
    :ivar ports: columns of its ports; new ones have no id.
    :ivar traits: its traits.
    :ivar inventory: what was found. It stays as it is.
    :ivar plugin_data: what else the ramdisk sent, and what hooks and rules add to it.
    """

    def __init__(self, task: Task, found: models.NodeInventory) -> None:
        self.task = task
        self.node: Tree = copy.deepcopy({name: getattr(task.node, name) for name in _SHOWN})
        self.ports: list[Tree] = [copy.deepcopy(port.as_dict()) for port in task.ports]
        self.traits = set(task.traits)
        self.inventory: Tree = found.inventory
        self.plugin_data: Tree = copy.deepcopy(found.plugin_data)
        self._before = {port["id"]: copy.deepcopy(port) for port in self.ports}

    def hand_over(self) -> None:
        """Set everything, for the write that ends the step."""
        before = self.task.node
        changed = {name: self.node[name] for name in NODE if self.node[name] != getattr(before, name)}
        self.task.set(**changed)
        written = [self._changes(port) for port in self.ports if port != self._before.get(port.get("id"))]
        self.task.add_extra_write(inventory.write_plugin_data(before.id, self.plugin_data))
        self.task.add_extra_write(inventory.write_conclusion(before.id, written, self.traits))

    def _changes(self, port: Tree) -> Tree:
        if "id" not in port:
            return port
        old = self._before[port["id"]]
        return {"id": port["id"]} | {name: port[name] for name in PORT if port[name] != old[name]}

    def port(self, ident: str) -> Tree:
        """Return a port by its MAC address or UUID.

        :raises Invalid: the node has none.
        """
        key = str(ident).lower()
        for port in self.ports:
            if key in (port["address"], port.get("uuid")):
                return port
        known = ", ".join(port["address"] for port in self.ports) or "none"
        raise errors.Invalid(field="port_id", value=ident, allowed=f"The ports of the node are: {known}.")


# Places in what is drafted


def parts(path: str) -> list[str]:
    """Return the parts of ``/properties/a``, ``properties/a`` or ``properties.a``.

    :raises Invalid: it leads nowhere.
    """
    found = path.strip("/").split("/") if "/" in path else path.split(".")
    if not isinstance(path, str) or not all(found):
        raise errors.Invalid(field="path", value=path, allowed="Names with slashes between them, such as /extra/rack.")
    return [part.replace("~1", "/").replace("~0", "~") for part in found]


def parse_path(path: str, allowed: dict[str, tuple[type, ...]]) -> list[str]:
    """Return the parts of a path that begins with one of some columns.

    :raises Invalid: it does not.
    """
    found = parts(path)
    if found[0] not in allowed:
        raise errors.Invalid(field="path", value=path, allowed=f"It begins with one of: {', '.join(sorted(allowed))}.")
    return found


def put(tree: Tree, path: list[str], value: object) -> None:
    """Set what is at a path; objects on the way are made.

    :raises Invalid: something on the way is no object.
    """
    _above(tree, path)[path[-1]] = value


def extend(tree: Tree, path: list[str], value: object, unique: bool) -> None:
    """Append to the list at a path, which is made.

    :raises Invalid: there is something else.
    """
    above = _above(tree, path)
    found = above.get(path[-1])
    if found is not None and not isinstance(found, list):
        raise errors.Invalid(field="path", value="/".join(path), allowed="There must be a list, or nothing.")
    above[path[-1]] = [*(found or []), *([] if unique and value in (found or []) else [value])]


def remove(tree: Tree, path: list[str]) -> None:
    """Remove what is at a path, if it is there."""
    _above(tree, path).pop(path[-1], None)


def _above(tree: Tree, path: list[str]) -> Tree:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise errors.Invalid(field="path", value="/".join(path), allowed=f"{part} is no object.")
    return tree


def check_type(tree: Tree, name: str, allowed: dict[str, tuple[type, ...]]) -> None:
    """
    :raises Invalid: a column has a value that does not belong there.
    """
    value = tree[name]
    if not isinstance(value, allowed[name]) or (isinstance(value, str) and (len(value) > 255 or "\0" in value)):
        names = {dict: "an object", bool: "true or false", str: "a text of 255 characters at most, without NUL"}
        choices = " or ".join(names[one] for one in allowed[name] if one in names)
        raise errors.Invalid(field=name, value=value, allowed=f"It must be {choices}.")


# Capabilities

_PAIR = re.compile(r"\s*([^:,]+):([^,]*)")


def capabilities(node: Tree) -> dict[str, str]:
    """Return the capabilities of a node by name, whichever form they have."""
    known = node["properties"].get("capabilities") or ""
    return dict(known) if isinstance(known, dict) else dict(_PAIR.findall(str(known)))


def set_capabilities(node: Tree, known: dict[str, str]) -> None:
    node["properties"]["capabilities"] = ",".join(f"{name}:{value}" for name, value in known.items())
