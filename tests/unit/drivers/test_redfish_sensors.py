"""Sensors in the newer form, as BMCs without Thermal and Power have them, and how much is asked for."""

from typing import Any

from ingot.drivers.redfish import sensors
from tests.unit.drivers.test_redfish_bmcs import RedfishTest

CHASSIS = "/redfish/v1/Chassis/1"


def link(path: str) -> dict[str, Any]:
    return {"@odata.id": path}


class SensorsTest(RedfishTest):
    def test_the_newer_form_and_each_reading_once(self) -> None:
        bmc = self.start(Links={"Chassis": [link(CHASSIS)]})
        inlet = f"{CHASSIS}/Sensors/Inlet"
        bmc.documents |= {
            CHASSIS: {name: link(f"{CHASSIS}/{name}") for name in ("Sensors", "ThermalSubsystem", "PowerSubsystem")},
            f"{CHASSIS}/Sensors": {"Members": [link(inlet), link(f"{CHASSIS}/Sensors/Gone")]},
            inlet: {
                "Name": "Inlet",
                "ReadingType": "Temperature",
                "ReadingUnits": "Cel",
                "Reading": -4.5,
                "Thresholds": {"UpperCritical": {"Reading": 42}, "UpperFatal": {"Reading": 1e300}},
                "Status": {"State": "Enabled", "Health": "OK"},
            },
            f"{CHASSIS}/ThermalSubsystem": {"ThermalMetrics": link(f"{CHASSIS}/Metrics")},
            f"{CHASSIS}/Metrics": {
                "TemperatureReadingsCelsius": [
                    {"DataSourceUri": inlet, "Reading": -4.5},
                    {"DeviceName": "CPU", "Reading": 61},
                ]
            },
            f"{CHASSIS}/PowerSubsystem": {"PowerSupplies": link(f"{CHASSIS}/Supplies")},
            f"{CHASSIS}/Supplies": {"Members": [link(f"{CHASSIS}/Supplies/0")]},
            f"{CHASSIS}/Supplies/0": {"Name": "PSU", "Status": {"State": "UnavailableOffline", "Health": "Critical"}},
        }
        task = self.node(bmc)
        found = {one["name"]: one for one in task.driver.management.get_sensors(task)}
        self.assertEqual({"Inlet", "CPU", "PSU"}, set(found))
        self.assertEqual((-4.5, "°C", {"upper_critical": 42.0}),
                         (found["Inlet"]["reading"], found["Inlet"]["unit"], found["Inlet"]["thresholds"]))  # fmt: skip
        self.assertEqual(("temperature", 61.0), (found["CPU"]["kind"], found["CPU"]["reading"]))
        self.assertEqual(("power_supply", "Critical", ["UnavailableOffline"]),
                         (found["PSU"]["kind"], found["PSU"]["health"], found["PSU"]["states"]))  # fmt: skip

    def test_a_collection_may_come_in_pages(self) -> None:
        bmc = self.start(Links={"Chassis": [link(CHASSIS)]})
        sensors = f"{CHASSIS}/Sensors"
        bmc.documents |= {
            CHASSIS: {"Sensors": link(sensors)},
            sensors: {"Members": [link(f"{sensors}/0")], "Members@odata.nextLink": f"{sensors}?$skip=1"},
            f"{sensors}?$skip=1": {"Members": [link(f"{sensors}/1")]},
            **{f"{sensors}/{n}": {"Name": f"Fan {n}", "ReadingUnits": "RPM", "Reading": n} for n in range(2)},
        }
        task = self.node(bmc)
        self.assertEqual(["Fan 0", "Fan 1"], [one["name"] for one in task.driver.management.get_sensors(task)])

    def test_requests_are_bounded(self) -> None:
        bmc = self.start(Links={"Chassis": [link(f"{CHASSIS}{n}") for n in range(2 * sensors.MOST_REQUESTS)]})
        task = self.node(bmc)
        self.assertEqual([], task.driver.management.get_sensors(task))
        asked = [path for method, path in bmc.requests if path.startswith(CHASSIS)]
        self.assertEqual(sensors.MOST_REQUESTS, len(asked))

    def test_pages_without_end_are_bounded(self) -> None:
        bmc = self.start(Links={"Chassis": [link(CHASSIS)]})
        endless = f"{CHASSIS}/Sensors"
        bmc.documents |= {
            CHASSIS: {"Sensors": link(endless)},
            endless: {"Members": [], "Members@odata.nextLink": endless},
        }
        task = self.node(bmc)
        self.assertEqual([], task.driver.management.get_sensors(task))
        self.assertLessEqual(bmc.count("GET", endless), sensors.MOST_REQUESTS)
