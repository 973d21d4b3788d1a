"""The example driver, from a package of its own, deploys machines: a hardware type and a classic driver."""

import functools
import http.server
import importlib.metadata
import threading
from typing import Any

import fixtures
import testtools

from ingot.common import interfaces
from tests import http_handler
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran

TOKEN = "open sesame"
OPTIONS = {
    "DEFAULT": {
        "enabled_hardware_types": "ipmi,example-hardware",
        "enabled_drivers": "example_classic",
        "enabled_power_interfaces": "ipmitool,example-plug",
        "enabled_management_interfaces": "ipmitool,noop",
    },
    "example": {"watch_interval": 1, "most_watts": 100},
}


class _Handler(http_handler.Handler):
    def __init__(self, bar: "PowerBar", *arguments: Any) -> None:
        self._bar = bar
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._show(self._bar.plugs.get(self.path.strip("/")))

    def do_PUT(self) -> None:
        self._show(self._bar.change(self.path.strip("/"), self.body()))

    def _show(self, document: dict[str, Any] | None) -> None:
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        self.answer(404 if document is None else 200 if allowed else 401, document if allowed else {})


class PowerBar(fixtures.Fixture):
    """A smart plug for each machine of a rack, at ``url``/NAME.

    :ivar plugs: the plugs' documents by machine.
    """

    def __init__(self, bench: lab.Lab) -> None:
        super().__init__()
        self._bench = bench
        self.plugs = {machine["name"]: {"on": False, "watts": 0.0, "display": ""} for machine in bench.rack.machines}

    def _setUp(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, self))
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def change(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        plug = self.plugs[name]
        if values.get("on", plug["on"]) != plug["on"]:
            powered = self._bench.rack.control.machine(name)["power"] == "on"
            if powered != values["on"]:
                self._bench.rack.control.power(name, "on" if values["on"] else "off")
        plug.update(values, watts=140.0 if values.get("on", plug["on"]) else 0.0)
        return plug


class TestExampleDriver(testtools.TestCase):
    def test_it_is_a_package_of_its_own(self) -> None:
        package = importlib.metadata.distribution("ingot-example-driver")
        self.assertEqual(
            {
                ("ingot.hardware.types", "example-hardware"),
                ("ingot.hardware.interfaces.power", "example-plug"),
                ("ingot.drivers", "example_classic"),
                ("oslo.config.opts", "ingot_example"),
            },
            {(point.group, point.name) for point in package.entry_points},
        )

    def test_hardware_type_and_classic_driver_deploy_machines(self) -> None:
        bench = self.useFixture(lab.Lab(machines=2, options=OPTIONS))
        bar = self.useFixture(PowerBar(bench))
        names = [machine["name"] for machine in bench.rack.machines]
        uuids = [
            bench.enroll(
                number, driver=driver, driver_info={"plug_url": f"{bar.url}/{names[number]}", "plug_token": TOKEN}
            )
            for number, driver in enumerate(("example-hardware", "example_classic"))
        ]
        self._check_composition(bench, *uuids)
        for uuid in uuids:
            bench.make_available(uuid)
            bench.set_image(uuid)
            bench.user.provision(uuid, "active")
        for number, uuid in enumerate(uuids):
            self.assertEqual("power on", bench.reach(uuid, "active")["power_state"])
            self.assertEqual([("show_name", 150), *CORE], ran(bench.step_runs(uuid)))
            (shown,) = [row for row in bench.step_runs(uuid) if row["step"] == "show_name"]
            self.assertEqual(("power", "driver", "done"), (shown["interface"], shown["origin"], shown["state"]))
            self.assertEqual({"on": True, "watts": 140.0, "display": names[number]}, bar.plugs[names[number]])
            self.assertTrue(bench.holds_image(number))
        self._check_that_both_are_watched(bench, uuids)

    def _check_composition(self, bench: lab.Lab, dynamic: str, classic: str) -> None:
        drivers = {one["name"]: one for one in bench.user.get("/v1/drivers?detail=true")["drivers"]}
        self.assertEqual(("dynamic", "classic"), tuple(
            drivers[name]["type"] for name in ("example-hardware", "example_classic")))  # fmt: skip
        self.assertEqual("example-plug", drivers["example-hardware"]["default_power_interface"])
        self.assertEqual("direct", bench.user.node(dynamic)["deploy_interface"])
        self.assertEqual({None}, {bench.user.node(classic)[name] for name in interfaces.FIELDS})
        for name in ("example-hardware", "example_classic"):
            self.assertIn("plug_url", bench.user.get(f"/v1/drivers/{name}/properties"))
        self.assertEqual("******", bench.user.node(classic)["driver_info"]["plug_token"])
        self.assertIs(True, bench.user.get(f"/v1/nodes/{classic}/validate")["power"]["result"])
        refused = bench.user.request(
            "PATCH", f"/v1/nodes/{classic}", [{"op": "add", "path": "/power_interface", "value": "ipmitool"}]
        )
        self.assertEqual(400, refused.status_code)
        self.assertIn("power_interface", refused.text)

    def _check_that_both_are_watched(self, bench: lab.Lab, uuids: list[str]) -> None:
        def watched() -> bool:
            log = bench.process.log.read_text()
            return all(f"Node {uuid} draws 140 W; [example] most_watts is 100" in log for uuid in uuids)

        bench.eventually(watched, "the load of both plugs is looked at")

    def test_its_step_can_be_asked_for_with_arguments(self) -> None:
        bench = self.useFixture(lab.Lab(options=OPTIONS))
        bar = self.useFixture(PowerBar(bench))
        uuid = bench.enroll(
            driver="example-hardware", driver_info={"plug_url": f"{bar.url}/machine-0", "plug_token": TOKEN}
        )
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")
        step = {"interface": "power", "step": "show_name", "args": {"text": "rack 7, third from the top"}}
        bench.user.provision(uuid, "clean", clean_steps=[step], disable_ramdisk=True)
        bench.eventually(lambda: bar.plugs["machine-0"]["display"] == step["args"]["text"], "the plug shows it")
        bench.reach(uuid, "manageable")
        bench.user.patch(f"/v1/nodes/{uuid}", {"/driver_info/plug_url": f"{bar.url}/machine-9"})
        bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
        last_error = bench.eventually(lambda: bench.user.node(uuid)["last_error"], "the power change fails")
        for part in (f"{bar.url}/machine-9", "HTTP 404", "check driver_info plug_url and plug_token"):
            self.assertIn(part, last_error)
        self.assertNotIn(TOKEN, last_error + bench.process.log.read_text())
