"""Sensors are read without a lock, spread over the interval, and shown only as long as they are fresh."""

from typing import Any

from ingot.common import errors, metrics, states
from ingot.conductor import sensor_forms, sensors
from ingot.db import models, nodes
from ingot.drivers.interfaces.sensors import Sensor
from tests import conductor_case, database, notices


def sensor(**values: Any) -> Sensor:
    known: dict[str, Any] = {"id": "5", "name": "Inlet Temp", "kind": "temperature", "reading": 21.5, "unit": "°C"}
    also = {"thresholds": {"upper_critical": 42.0}, "health": "OK", "place": "System Board", "states": []}
    return {**known, **also, **values}  # type: ignore[typeddict-item]


MESSAGE: dict[str, Any] = {"node_uuid": "u", "node_name": "n", "instance_uuid": None}


class FormsTest(database.TestCase):
    def test_ipmi(self) -> None:
        payload = sensor_forms.build_payload("ipmi", [sensor(), sensor(kind="intrusion")])
        reading = {"Sensor ID": "Inlet Temp (0x5)", "Entity ID": "System Board", "Status": "ok"}
        reading |= {"Sensor Reading": "21.5 (+/- 0) degrees C", "Upper critical": "42"}
        self.assertEqual({"Temperature": {"Inlet Temp (0x5)": reading}}, payload)
        [sample] = sensor_forms.build_samples("ipmi", {**MESSAGE, "payload": payload})
        labels = {"node_name": "n", "node_uuid": "u", "instance_uuid": "u", "entity_id": "System Board"}
        labels |= {"sensor_id": "Inlet Temp (0x5)", "status": "ok"}
        self.assertEqual(("baremetal_inlet_temp_celsius", labels, 21.5), sample)

    def test_only_requested_types(self) -> None:
        found = [sensor(), sensor(id="6", kind="fan", unit="RPM")]
        self.assertEqual(["Fan"], list(sensor_forms.build_payload("redfish", found, ["fan", "Power"])))
        self.assertEqual(["Temperature", "Fan"], list(sensor_forms.build_payload("redfish", found)))

    def test_what_a_machine_calls_its_sensors_makes_no_odd_metric(self) -> None:
        odd = [sensor(name='evil{a="b"}\n' * 50, place="x\n{}" * 99, id=str(number)) for number in range(2)]
        for driver in ("ipmi", "redfish"):
            payload = sensor_forms.build_payload(driver, odd)
            for sample in sensor_forms.build_samples(driver, {**MESSAGE, "payload": payload}):
                self.assertRegex(sample.name, r"\A[a-z_][a-z0-9_]{1,150}\Z")
                self.assertTrue(all(len(value) <= 120 for value in sample.labels.values()))

    def test_names_that_are_no_text_can_be_served(self) -> None:
        odd = [sensor(name="Inlet \ud800 Temp", place="\udfff")]
        metrics.ask("odd", lambda: map(self._show, sensor_forms.build_samples("redfish", self._build(odd))))
        self.addCleanup(metrics.ask, "odd", list)
        self.assertIn(b'name="Inlet ? Temp"', metrics.render(metrics.Part.ALL))

    def _build(self, found: list[Sensor]) -> dict[str, Any]:
        return {**MESSAGE, "payload": sensor_forms.build_payload("redfish", found)}

    def _show(self, sample: sensor_forms.Sample) -> metrics.Metric:
        family = metrics.Metric(sample.name, "odd", "gauge")
        family.add_sample(sample.name, {**sample.labels}, sample.value)
        return family


class ReaderTest(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        notices.switch_on(self.conf, None)
        self.conf.set_override("sync_power_state_interval", 60, group="conductor")
        self.conf.set_override("send_sensor_data", True, group="sensor_data")
        self.conf.set_override("interval", 1, group="sensor_data")

    def setUp(self) -> None:
        super().setUp()
        self.conductor.membership.join()
        self.reader = sensors.SensorReader(self.conductor.services, self.conductor.membership.owns)
        self.addCleanup(self.reader.stop)

    def node(self, **values: Any) -> models.Node:
        known = {"provision_state": states.ACTIVE, "name": values.pop("name", "n1"), "instance_uuid": None}
        return database.make_node(self.db, **{**known, **values})

    def read(self) -> None:
        self.reader.read(self.reader.list_nodes(), 0.0)
        conductor_case.eventually(lambda: not self.reader._running, "all are read")

    def shown(self) -> dict[str, float]:
        return {sample.name: sample.value for family in self.reader.collect() for sample in family.samples}

    def test_active_machines_are_read(self) -> None:
        node = self.node()
        self.node(name="n2", provision_state=states.AVAILABLE)
        self.node(name="n3", maintenance=True)
        self.read()
        self.assertEqual(
            {
                "baremetal_temp_other_celsius": 21.0,
                "baremetal_temperature_status": 0.0,
                "baremetal_fan_status": 0.0,
            },
            self.shown(),
        )
        [message] = notices.take(self.conductor.services.notifier)
        self.assertEqual("hardware.fake-hardware.metrics", message["event_type"])
        self.assertEqual(f"ironic-conductor.{self.conf.host}", message["publisher_id"])
        body = message["payload"]
        self.assertEqual(
            (node.uuid, "n1", None), tuple(body[f"{name}"] for name in ("node_uuid", "node_name", "instance_uuid"))
        )
        self.assertEqual("hardware.fake-hardware.metrics.update", body["event_type"])
        self.assertEqual({"Temperature", "Fan"}, set(body["payload"]))
        self.assertIsNone(nodes.get(self.db, node.uuid).reservation)

    def test_undeployed_ones_where_configured(self) -> None:
        self.node(provision_state=states.AVAILABLE)
        self.assertEqual(0, len(self.reader.list_nodes()))
        self.conf.set_override("enable_for_undeployed_nodes", True, group="sensor_data")
        self.assertEqual(1, len(self.reader.list_nodes()))

    def test_an_unresponsive_bmc_is_left_alone(self) -> None:
        asked = []

        def fail(task: Any) -> list[Sensor]:
            asked.append(task.node.uuid)
            with task.circuit_breakers.observe_call(task.node.uuid, task.node.uuid, "fake-hardware"):
                raise errors.HardwareUnreachable(what="BMC", reason="nothing came back")

        management: Any = self.conductor.services.hardware.interface("management", "fake")
        management.get_sensors = fail
        self.addCleanup(lambda: vars(management).pop("get_sensors"))
        self.node()
        self.read()
        self.read()
        self.assertEqual(1, len(asked))
        self.assertEqual({}, self.shown())

    def test_what_one_round_leaves_is_first_in_the_next(self) -> None:
        self.conf.set_override("workers", 1, group="sensor_data")
        reader = sensors.SensorReader(self.conductor.services, self.conductor.membership.owns)
        self.addCleanup(reader.stop)
        asked: list[str] = []

        def note(task: Any) -> list[Sensor]:
            asked.append(task.node.uuid)
            return []

        management: Any = self.conductor.services.hardware.interface("management", "fake")
        management.get_sensors = note
        self.addCleanup(lambda: vars(management).pop("get_sensors"))
        for number in range(3):
            self.node(name=f"rack-{number}")
        first, *others = reader.list_nodes()
        reader.read([first], 0.0)
        reader.read([first, *others], 0.0)
        conductor_case.eventually(lambda: len(asked) == 4, "all are read")
        self.assertEqual([first, *others, first], asked)

    def test_what_is_old_is_not_shown(self) -> None:
        self.node()
        self.read()
        self.assertNotEqual({}, self.shown())
        self.conf.set_override("wait_timeout", 1, group="sensor_data")
        self.reader._latest = {uuid: read._replace(at=read.at - 4) for uuid, read in self.reader._latest.items()}
        self.assertEqual({}, self.shown())
