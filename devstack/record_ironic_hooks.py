"""Records what the inspection hooks of Ironic make of the cases in ``tests/inspection_cases.py``.

Run it with a Python that has Ironic: ``venv/bin/python devstack/record_ironic_hooks.py``. Database and tasks are
replaced; the hooks are Ironic's own, found by its entry points.
"""

import copy
import importlib.metadata
import importlib.util
import json
import pathlib
import sys
import types
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULT = ROOT / "tests" / "ironic_hooks.json"
RELEASE = "39.0.0"
_GROUP = "ironic.inspection.hooks"


class _Port(types.SimpleNamespace):
    def set_local_link_connection(self, name: str, value: object) -> None:
        self.local_link_connection[name] = value

    def save(self) -> None:
        """Store nothing: the object is what is looked at."""


class _Node(types.SimpleNamespace):
    def set_property(self, name: str, value: object) -> None:
        self.properties[name] = value

    def save(self) -> None:
        """Store nothing: the object is what is looked at."""


def _load_cases() -> dict[str, dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("inspection_cases", ROOT / "tests" / "inspection_cases.py")
    if spec is None or spec.loader is None:
        raise SystemExit("There are no cases")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases: dict[str, dict[str, Any]] = module.CASES
    return cases


def _run(case: dict[str, Any]) -> dict[str, Any]:
    """Return what a hook makes of a case: node, port, data, or its error."""
    from ironic.common import exception  # noqa: PLC0415 - Ironic is not there where this is checked
    from ironic.conf import CONF  # noqa: PLC0415

    for name, value in case.get("options", {}).items():
        CONF.set_override(name, value, "inspector")
    inventory, plugin_data = copy.deepcopy(case["inventory"]), copy.deepcopy(case.get("plugin_data", {}))
    properties = copy.deepcopy(case.get("properties", {}))
    node = _Node(id=1, uuid="node", properties=properties)
    given = {"local_link_connection": {}, "physical_network": None, **copy.deepcopy(case.get("port", {}))}
    port = _Port(id=1, uuid="port", address=case["inventory"]["interfaces"][0]["mac_address"], **given)
    task = types.SimpleNamespace(node=node, context=None)
    before = case.get("before")
    stored = {"inventory_data": before} if before else exception.NodeInventoryNotFound(node="node")
    error = None
    try:
        with (
            mock.patch("ironic.objects.port.Port.get_by_address", return_value=port),
            mock.patch("ironic.objects.Port.list_by_node_id", return_value=[port], create=True),
            mock.patch("ironic.objects.node_inventory.NodeInventory.get_by_node_id", side_effect=[stored]),
        ):
            for name in ("validate-interfaces", case["hook"]):
                (entry_point,) = importlib.metadata.entry_points(group=_GROUP, name=name)
                sys.modules.pop(entry_point.module, None)  # some read options when they are imported
                hook = entry_point.load()()
                hook.preprocess(task, inventory, plugin_data)
                hook(task, inventory, plugin_data)
    except Exception as exc:  # noqa: BLE001 - what a hook does is what is recorded
        error = type(exc).__name__
    for name in case.get("options", {}):
        CONF.clear_override(name, "inspector")
    for name in ("all_interfaces", "valid_interfaces", "macs"):
        plugin_data.pop(name, None)
    link, network = port.local_link_connection, port.physical_network
    made = {"properties": node.properties, "plugin_data": plugin_data, "link": link, "network": network}
    return {"error": error} if error else made


def main() -> None:
    """Write the results of all cases."""
    found = importlib.metadata.version("ironic")
    if found != RELEASE:
        raise SystemExit(f"This is Ironic {found}: install {RELEASE}, or change RELEASE")
    from ironic import objects  # noqa: PLC0415

    objects.register_all()
    results = {name: _run(case) for name, case in _load_cases().items()}
    RESULT.write_text(json.dumps({"ironic": RELEASE, "results": results}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
