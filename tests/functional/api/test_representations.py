"""Every representation at every API version: its status, its fields and their types, as they were measured.

``measured_fields.json`` holds what 8,280 requests to the reference implementation showed: by representation its path,
the statuses by range of versions, and by field the minor version that brought it and its type.
"""

import json
import pathlib
from typing import Any

from ingot.api.web import versions
from ingot.conductor import manager
from ingot.db import facts, nodes
from tests import api_case, conductor_case, world

MEASURED: dict[str, dict[str, Any]] = json.loads((pathlib.Path(__file__).parent / "measured_fields.json").read_text())

HIDDEN = "what is newer than the request's version is hidden in every list"

INTENDED: dict[str, tuple[str, str]] = {
    "deploy_template (list item): with steps": ("1.55 to 1.115", "specification 003"),
    "driver properties: with fake_power_fault": ("1.1 to 1.115", "our fakes have other properties"),
    "driver properties: without B1": ("1.1 to 1.115", "our fakes have other properties"),
    "driver properties: without B2": ("1.1 to 1.115", "our fakes have other properties"),
    "node children: 404 and not 500": ("1.1 to 1.82", "the reference crashes"),
    "portgroup (GET one): without ports": ("1.23 to 1.23", "the URL that it names came with 1.24"),
    "portgroup (list item, /detail): without category": ("1.23 to 1.102", HIDDEN),
    "portgroup (list item, /detail): without dynamic_portgroup": ("1.23 to 1.110", HIDDEN),
    "portgroup (list item, /detail): without mode": ("1.23 to 1.25", HIDDEN),
    "portgroup (list item, /detail): without physical_network": ("1.23 to 1.101", HIDDEN),
    "portgroup (list item, /detail): without ports": ("1.23 to 1.23", HIDDEN),
    "portgroup (list item, /detail): without properties": ("1.23 to 1.25", HIDDEN),
}
"""What is meant to be different, at which versions and why."""

TYPES: dict[str, type] = {"bool": bool, "dict": dict, "float": float, "int": int, "list": list, "str": str}


class Representations(world.WorldCase):
    def setUp(self) -> None:
        super().setUp()
        conductor_case.fake_hardware(self.conf)
        self.conf.set_override("host", api_case.HOST)
        self.bus.serve(api_case.HOST, manager.Conductor(self.conf, self.db).endpoint)
        for url, field, collection in ((self.made_at("nodes"), "chassis_uuid", "chassis"),
                                       (self.made_at("ports"), "portgroup_uuid", "portgroups")):  # fmt: skip
            change = {"op": "add", "path": f"/{field}", "value": self.made[f"/v1/{collection}"]}
            self.good("PATCH", url, [change])
        locked = nodes.lock(self.db, self.uuid, api_case.HOST, "reading")
        read = facts.BIOS.build_write(locked.id, [{"name": "virtualization", "value": "on"}])
        nodes.write_locked(self.db, locked, {}, extra_writes=[read])
        nodes.release_stale(self.db, api_case.HOST)
        self.named = {
            "{node}": self.uuid,
            "{node2}": self.uuid,
            "al1": "a",
            "CUSTOM_T1": "CUSTOM_T",
            "CUSTOM_R1": "CUSTOM_R",
            "<conductor>": api_case.HOST,
            "history/<uuid>": f"history/{self.entry}",
            "{chassis}": self.made["/v1/chassis"],
            "{port}": self.made["/v1/ports"],
            "{portgroup}": self.made["/v1/portgroups"],
            **{f"{path}/<uuid>": f"{path}/{made}" for path, made in self.made.items()},
        }

    def made_at(self, collection: str) -> str:
        return f"/v1/{collection}/{self.made[f'/v1/{collection}']}"

    def test_all(self) -> None:
        wrong: dict[str, list[int]] = {}
        for name, measured in MEASURED.items():
            url = self.path(measured["path"])
            for minor in versions.HISTORY:
                for complaint in self.compared(name, measured, url, minor):
                    wrong.setdefault(f"{name}: {complaint}", []).append(minor)
        found = {what: f"1.{min(minors)} to 1.{max(minors)}" for what, minors in wrong.items()}
        self.assertEqual({what: at for what, (at, _why) in INTENDED.items()}, found)

    def path(self, path: str) -> str:
        for name, known in self.named.items():
            path = path.replace(name, known)
        return path

    def compared(self, name: str, measured: dict[str, Any], url: str, minor: int) -> list[str]:
        answer = self.api("GET", url, version=f"1.{minor}")
        expected = status(measured, minor)
        if answer.status != expected:
            return [f"{answer.status} and not {expected}"]
        if expected != 200:
            return []
        items = answer.json[measured["key"]] if measured["key"] else [answer.json]
        if not items:
            return ["empty"]
        shown = items[0]
        known = {field: kind for field, (since, kind) in measured["fields"].items() if since <= minor}
        missing = [f"without {field}" for field in sorted(known.keys() - shown)]
        more = [f"with {field}" for field in sorted(shown.keys() - known)]
        return missing + more + [f"{field} is {shown[field]!r}, not {kind}" for field, kind in known.items()
                                 if field in shown and not fits(shown[field], kind)]  # fmt: skip


def status(measured: dict[str, Any], minor: int) -> int:
    """Return the measured status at a version."""
    for code, span in measured["status"].items():
        first, last = (int(version.partition(".")[2]) for version in span.split("-"))
        if first <= minor <= last:
            return int(code)
    raise AssertionError(f"nothing was measured at 1.{minor}")


def fits(value: Any, kind: str) -> bool:
    """Return whether a value is null or of a measured type; a value measured as null may be anything."""
    return value is None or kind == "NoneType" or type(value) is TYPES[kind]
