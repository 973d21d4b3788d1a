"""ironic-prometheus-exporter reads Ingot's messages, and makes of them the metrics that Ingot shows itself."""

import pathlib
from typing import Any

import fixtures
import prometheus_client.parser
import testtools
from oslo_config import cfg

from ingot.common import clock, context
from ingot.common.conf import broker, opts
from ingot.conductor import sensor_forms
from ingot.drivers.interfaces.sensors import Sensor
from ingot.notifications.notifier import CONDUCTOR, Notifier

Shown = set[tuple[str, tuple[tuple[str, str], ...], float]]

_TIMESTAMP = "baremetal_last_payload_timestamp_seconds"


def _sensor(ident: str, name: str, kind: str, reading: float | None = None, unit: str | None = None) -> Sensor:
    return {
        **{"id": ident, "name": name, "kind": kind, "reading": reading, "unit": unit},
        **{"thresholds": {}, "health": "Warning", "place": "CPU", "states": [] if reading else ["Enabled"]},
    }  # type: ignore[typeddict-item]


_SENSORS = [
    _sensor("1", "Temp", "temperature", 40.0, "°C"),
    _sensor("2", "Temp", "temperature", 41.5, "°C"),
    _sensor("5", "Inlet Temp", "temperature", 21.0, "°C"),
    _sensor("48", "Fan1A RPM", "fan", 5400.0, "RPM"),
    _sensor("49", "Fan2B RPM", "fan", 5460.0, "RPM"),
    _sensor("107", "Voltage 1", "voltage", 230.0, "V"),
    _sensor("108", "3.3V PG-Rail", "voltage", 3.3, "V"),
    _sensor("106", "Current 1", "current", 0.4, "A"),
    _sensor("119", "Pwr Consumption", "power", 168.0, "W"),
    _sensor("100", "PS1 Status", "power_supply"),
    _sensor("101", "DIMM PG", "memory"),
    _sensor("102", "Mem ECC Warning", "memory"),
    _sensor("103", "SEL", "other"),
    _sensor("drive0", "SSD 0", "drive"),
]


class ExporterTest(testtools.TestCase):
    def export(self, driver: str, message: dict[str, Any]) -> Shown:
        """Return what the exporter writes into its file when it gets a message."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        conf = opts.load([], prog="ingot-tests", files=[])
        broker.notification_address(conf)
        conf.register_opts([cfg.StrOpt("location")], broker.NOTIFICATIONS)
        conf.set_override("location", str(folder), broker.NOTIFICATIONS)
        conf.set_override("driver", ["prometheus_exporter"], broker.NOTIFICATIONS)
        conf.set_override("transport_url", "fake://", broker.NOTIFICATIONS)
        conf.set_override("send_sensor_data", True, group="sensor_data")
        # Its driver, once imported, also makes the option a required one of cfg.CONF, which other tests use.
        self.addCleanup(cfg.CONF.unregister_opts, [cfg.StrOpt("location")], broker.NOTIFICATIONS)
        notifier = Notifier(conf, CONDUCTOR)
        notifier.tell_meters(context.RequestContext(), f"hardware.{driver}.metrics", message)
        notifier.close(60)
        [file] = folder.iterdir()
        families = prometheus_client.parser.text_string_to_metric_families(file.read_text())
        samples = [sample for family in families for sample in family.samples]
        return {(one.name, tuple(sorted(one.labels.items())), one.value) for one in samples}

    def test_names_labels_and_values_are_the_same(self) -> None:
        for driver, name in (("ipmi", "rack1-7"), ("ipmi", None), ("redfish", "rack1-7"), ("redfish", None)):
            message: dict[str, Any] = {
                "node_uuid": "c9b1a5b2-6a3e-4f2e-9a55-0f3f1a1d3c11",
                "node_name": name,
                "instance_uuid": None,
                "timestamp": clock.now().isoformat(timespec="microseconds"),
                "payload": sensor_forms.build_payload(driver, _SENSORS),
            }
            exported = self.export(driver, message)
            ours = {
                (one.name, tuple(sorted(one.labels.items())), one.value)
                for one in sensor_forms.build_samples(driver, message)
            }
            self.assertIn(_TIMESTAMP, {one[0] for one in exported})
            self.assertEqual({one for one in exported if one[0] != _TIMESTAMP}, ours, driver)
