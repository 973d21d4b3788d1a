"""What a conductor answers about itself, and what the sensors of its machines read, through the API."""

from typing import Any

from ingot.common import errors
from tests import database, plan_case


class Load(plan_case.PlanCase):
    def test_it_says_what_it_has_to_do_and_which_bmcs_are_silent(self) -> None:
        silence = errors.HardwareUnreachable(what="BMC 192.0.2.7", reason="nothing came back")
        try:
            with self.conductor.services.circuit_breakers.observe_call("a node", "192.0.2.7:623"):
                raise silence
        except errors.HardwareUnreachable:
            pass
        found = self.ask("GET", "/ingot/v1/conductors")["conductors"]
        load = found[0]["load"]
        self.assertEqual([("usual", 0), ("slow", 0)], [(pool["name"], pool["busy"]) for pool in load["pools"]])
        self.assertEqual((0, 0, 0), (load["threads_busy"], load["working"], load["queue"]))
        self.assertEqual(sum(pool["most"] for pool in load["pools"]), load["threads_most"])
        self.assertEqual(
            [("192.0.2.7:623", silence.message)], [(one["address"], one["reason"]) for one in load["breakers"]]
        )


class Sensors(plan_case.PlanCase):
    def test_they_are_read_now(self) -> None:
        node = database.make_node(self.db)
        answer = self.ask("GET", f"/ingot/v1/nodes/{node.uuid}/sensors")
        self.assertEqual(2, len(answer["sensors"]))
        self.assertEqual(["temperature", "fan"], [one["kind"] for one in answer["sensors"]])


class OfferedSteps(plan_case.PlanCase):
    def offers(self, flow: str) -> dict[str, Any]:
        node = database.make_node(self.db)
        found = self.ask("GET", f"/ingot/v1/nodes/{node.uuid}/steps?flow={flow}")["steps"]
        return {f"{one['interface']}.{one['step']}": one for one in found}

    def test_all_that_can_be_asked_for_are_listed_with_their_arguments(self) -> None:
        for flow in ("deploy", "clean", "service"):
            offers = self.offers(flow)
            pause = offers["vendor.pause"]
            self.assertEqual((0, "driver", None), (pause["priority"], pause["runner"], pause["offered_at"]), flow)
            self.assertEqual("number", pause["argsinfo"]["seconds"]["type"])
            self.assertEqual({}, offers["bios.factory_reset"]["argsinfo"])
            wait = offers["None.wait"]
            self.assertEqual(("reserved", ["seconds"]), (wait["runner"], list(wait["argsinfo"])))
        self.assertNotIn("deploy.write_image", self.offers("clean"))

    def test_an_unknown_flow_is_refused(self) -> None:
        node = database.make_node(self.db)
        refusal = self.refused("GET", f"/ingot/v1/nodes/{node.uuid}/steps?flow=dance")
        self.assertIn("clean, deploy, service", refusal)
