"""Every API version: what it brought is not there one version before, and there from it on.

What a table of routes, parameters, fields or keys says of versions is checked by ``test_every_route``.
"""

from typing import Any

from ingot.api.nodes import verbs
from ingot.api.web import versions
from ingot.common import states
from ingot.db import nodes
from tests import api_case, route_walk, world
from tests.api_case import DRIVE
from tests.route_walk import Newer

ELSEWHERE: dict[int, str] = {
    1: "the first",
    2: "tests.unit.api.test_fields.NodeValues.test_available_was_shown_as_null_before_1_2",
    10: "nothing: names are as free at every version (intended)",
    11: "tests.unit.api.test_every_version.Values.test_new_nodes_are_available_before_1_11_and_in_enroll_from_it_on",
    13: "tests.unit.api.test_provision",
    25: "nothing: a node leaves its chassis at every version (intended)",
    35: "tests.unit.api.test_every_version.Verbs.test_arguments",
    39: "tests.unit.api.test_every_version.Values.test_inspect_wait_is_inspecting_before_1_39",
    41: "tests.unit.api.test_provision",
    43: "tests.unit.api.test_every_version.Values.test_lists_of_nodes_take_detail_from_1_43_on",
    56: "tests.unit.api.test_every_version.Values.test_a_config_drive_is_an_object_from_1_56_on",
    59: "tests.unit.api.test_every_version.Values.test_a_config_drive_is_an_object_from_1_56_on",
    63: "nothing: indicators answer at every version, as measured",
    64: "nothing: network_type is taken at every version (intended)",
    67: "tests.unit.api.test_every_version.Values.test_a_vif_has_a_place_from_1_67_on",
    71: "nothing: it announces rules of policy",
    79: "nothing: an allocation prefers the node of its name at every version (intended)",
    80: "nothing: it announces rules of policy",
    84: "tests.unit.api.test_every_version.Values.test_the_end_of_an_inspection_is_announced_from_1_84_on",
    90: "nothing: the form is taken at every version (intended)",
    91: "tests.unit.api.test_every_version.Values.test_a_name_may_end_with_json_from_1_91_on",
    98: "tests.unit.api.test_every_version.Values.test_paths_of_a_patch_are_escaped_from_1_98_on",
    105: "nothing: the form is still accepted, as measured",
    107: "nothing: the header is sent at every version, as measured",
    110: "tests.unit.api.test_provision",
}
"""Versions that brought no route, parameter, field or key: where their test is, or why there is none."""


class Versioned(route_walk.Walk):
    """Requests that need a version, whatever the tables say of their routes."""

    def check(self, since: int, method: str, url: str, body: Any, *refusals: int, names: tuple[str, ...] = ()) -> None:
        newer = Newer("values", since, method, url, body, refusals, names)
        self.check_before(newer)
        self.check_from(newer)


class Verbs(Versioned):
    def test_are_refused_before_their_version(self) -> None:
        url = f"/v1/nodes/{self.uuid}/states/provision"
        for name, verb in verbs.VERBS.items():
            if verb.since > 1:
                self.check(verb.since, "PUT", url, {"target": name}, 406)

    def test_arguments(self) -> None:
        url = f"/v1/nodes/{self.uuid}/states/provision"
        values: dict[str, Any] = {"configdrive": DRIVE, "disable_ramdisk": True, "runbook": "CUSTOM_R"}
        for verb in verbs.VERBS.values():
            for name, since in verb.arguments.items():
                if since > verb.since:
                    body = {"target": verb.name, name: values.get(name, [world.STEP])}
                    self.check(since, "PUT", url, body, 400, 406)

    def test_power(self) -> None:
        for target in ("soft power off", "soft rebooting"):
            url = f"/v1/nodes/{self.uuid}/states/power"
            self.check(27, "PUT", url, {"target": target}, 406)


class Values(Versioned):
    """What a version brought that is no name in a table."""

    def test_new_nodes_are_available_before_1_11_and_in_enroll_from_it_on(self) -> None:
        for version, state in (("1.10", "available"), ("1.11", "enroll")):
            self.assertEqual(state, self.good("POST", "/v1/nodes", api_case.NODE, version)["provision_state"])

    def test_inspect_wait_is_inspecting_before_1_39(self) -> None:
        nodes.set_always(self.db, self.uuid, {"provision_state": states.INSPECTWAIT})
        for version, state in (("1.38", states.INSPECTING), ("1.39", states.INSPECTWAIT)):
            self.assertEqual(state, self.good("GET", "/v1/nodes/n", version=version)["provision_state"])

    def test_lists_of_nodes_take_detail_from_1_43_on(self) -> None:
        self.check(43, "GET", "/v1/nodes?detail=true", None, 400, names=("detail",))

    def test_a_vif_has_a_place_from_1_67_on(self) -> None:
        body = {**world.BODIES["vifs"], "port_uuid": self.made["/v1/ports"]}
        self.check(67, "POST", "/v1/nodes/n/vifs", body, 406)

    def test_the_end_of_an_inspection_is_announced_from_1_84_on(self) -> None:
        for version, announced in (("1.83", False), ("1.84", True)):
            self.assertEqual(announced, "continue_inspection" in self.good("GET", "/v1", version=version))

    def test_a_config_drive_is_an_object_from_1_56_on(self) -> None:
        url = f"/v1/nodes/{self.uuid}/states/provision"
        for since, drive in ((56, {"meta_data": {}}), (59, {"vendor_data": {}})):
            self.check(since, "PUT", url, {"target": "active", "configdrive": drive}, 406)

    def test_a_name_may_end_with_json_from_1_91_on(self) -> None:
        self.assertEqual(200, self.api("GET", "/v1/nodes/n.json", version="1.90").status)
        self.assertEqual(404, self.api("GET", "/v1/nodes/n.json", version="1.91").status)

    def test_paths_of_a_patch_are_escaped_from_1_98_on(self) -> None:
        patch = [{"op": "add", "path": "/extra/a~1b", "value": 1}]
        self.check(98, "PATCH", "/v1/nodes/n", patch, 400)
        self.assertEqual({"a/b": 1}, self.good("GET", "/v1/nodes/n")["extra"])


class Completeness(route_walk.Walk):
    def test_every_version_has_a_test(self) -> None:
        seen = set(ELSEWHERE)
        for visit in self.visits():
            seen |= {visit.since, *(param.since for param in visit.operation.query.values())}
            seen |= {field.post_since or field.since for field in visit.keys}
            seen |= {field.since for field in visit.shown[0].fields.values()} if visit.shown else set()
        for verb in verbs.VERBS.values():
            seen |= {verb.since, *verb.arguments.values(), *verb.since_in.values()}
        self.assertEqual([], [f"1.{n}: {versions.HISTORY[n]}" for n in sorted(set(versions.HISTORY) - seen)])
