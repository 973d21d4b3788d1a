"""Prometheus of Debian reads a site of an API and two conductors; promtool takes what they serve and our alerts; alerts
fire when a conductor is killed, a BMC is dead, and a node is where it is for too long."""

import functools
import json
import pathlib
import signal
import urllib.request
from collections.abc import Mapping
from typing import Any

import fixtures
import testtools
import yaml

from ingot.rack import ports
from tests import database
from tests.functional import services
from tests.functional.deployment import lab
from tests.gate.monitoring import firing
from tests.gate.monitoring.prometheus import FOLDER, PATIENCE, Prometheus, promtool

MOST_SERIES = 2000
"""Of one process that has deployed a machine."""

EMPTY = {
    *("Nodes with a fault", "Steps that failed", "In maintenance, locked, overdue", "Nodes owned"),
    *("Discovered machines", "Notifications, audit, sessions, other services"),
}
"""Panels that show, at least in part, what a healthy site has nothing of, or what is off by default."""

OPTIONS = {
    "metrics": {"state_time_limits": "enroll:0, available:1", "node_count_interval": 1},
    "sensor_data": {"send_sensor_data": True, "interval": 2, "wait_timeout": 30},
}


class TestAlerts(testtools.TestCase):
    def test_prometheus_takes_them(self) -> None:
        promtool("check", "rules", str(FOLDER / "alerts.yaml"))
        promtool("check", "config", "--syntax-only", str(FOLDER / "prometheus.yaml"))

    def test_each_fires_when_it_should_and_not_before(self) -> None:
        rules = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
        names = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
        self.assertEqual(sorted(names), sorted(firing.CASES))
        calm = self.case("", firing.CALM, "count(ALERTS)")
        cases = [self.case(name, one, f'count(ALERTS{{alertname="{name}",alertstate="firing"}})')
                 for name, one in firing.CASES.items()]  # fmt: skip
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        tests = {"rule_files": [str(FOLDER / "alerts.yaml")], "evaluation_interval": "1m", "tests": [calm, *cases]}
        (folder / "tests.yaml").write_text(yaml.safe_dump(tests))
        self.assertIn("SUCCESS", promtool("test", "rules", "tests.yaml", where=folder))

    def case(self, name: str, one: firing.Case, expression: str) -> dict[str, Any]:
        """Return a test of promtool: nothing fires at the beginning, and at the end what should."""
        at_end = [{"labels": "{}", "value": one.fires}] if one.fires else []
        looks = [(0, []), (one.minutes, at_end)]
        return {
            "name": name,
            "interval": "1m",
            "input_series": [{"series": series, "values": values} for series, values in one.series.items()],
            "promql_expr_test": [
                {"expr": expression, "eval_time": f"{minutes}m", "exp_samples": samples} for minutes, samples in looks
            ],
        }


class Site(lab.Lab):
    """Each of its processes serves metrics at a port of its own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.watched = {name: ports.tcp() for name in (*self._ports, *self.names)}

    def own_options(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        option = "api_port" if name in self._ports else "conductor_port"
        return {"metrics": {option: self.watched[name]}} if name in self.watched else {}

    def targets(self, names: Mapping[str, Any]) -> list[str]:
        return [f"127.0.0.1:{self.watched[name]}" for name in names]


class TestSite(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        url = self.useFixture(database.DatabaseFixture("mysql", migrated=False)).url
        options = {**lab.MORTAL, **OPTIONS}
        settings = {"database_url": url, "rabbit_url": services.broker_url(), "options": options}
        self.site = Site(**settings, conductors=2, machines=2)
        self.useFixture(self.site)
        jobs = {"ingot-api": self.site.apis, "ingot-conductor": self.site.conductors}
        targets = {job: self.site.targets(names) for job, names in jobs.items()}
        self.prometheus = self.useFixture(Prometheus(targets))

    def test_a_site_is_watched(self) -> None:
        self.every_process_is_read()
        active, idle = self.site.enroll(0), self.site.enroll(1)
        for uuid in (active, idle):
            self.site.make_available(uuid)
        self.site.set_image(active)
        self.site.user.provision(active, "active")
        self.site.reach(active, "active")
        self.sensors_are_read(active)
        self.what_is_served_is_valid_and_bounded()
        self.panels_show_what_happened()
        self.an_idle_node_is_overdue(idle)
        self.a_dead_bmc_is_seen()
        self.a_killed_conductor_is_missing()

    def every_process_is_read(self) -> None:
        self.prometheus.eventually(lambda: len(self.prometheus.query("up == 1")) == 3, "all processes are read")
        self.assertEqual(
            {"ingot-api", "ingot-conductor"}, {one["metric"]["job"] for one in self.prometheus.query("up")}
        )

    def sensors_are_read(self, uuid: str) -> None:
        """Check that sensors of the active machine have the names and labels of ironic-prometheus-exporter."""
        sensor = f'baremetal_inlet_temp_celsius{{node_uuid="{uuid}",node_name="{self.site.user.node(uuid)["name"]}"}}'
        found = self.prometheus.eventually(functools.partial(self.prometheus.query, sensor), "a sensor is read")
        self.assertEqual(("ingot-conductor", "ok"), tuple(found[0]["metric"][label] for label in ("job", "status")))
        self.assertGreater(float(found[0]["value"][1]), 0)

    def what_is_served_is_valid_and_bounded(self) -> None:
        for name, port in self.site.watched.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
                text = answer.read().decode()
            promtool("check", "metrics", text=text)
            series = [line for line in text.splitlines() if not line.startswith("#")]
            self.assertLess(len(series), MOST_SERIES, name)
            others = "\n".join(line for line in series if not line.startswith("baremetal_"))  # sensors name nodes
            for node in self.site.user.get("/v1/nodes")["nodes"]:
                self.assertNotIn(node["uuid"], others)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=PATIENCE) as answer:
                self.assertEqual(200, answer.status)

    def panels_show_what_happened(self) -> None:
        """Check that Prometheus takes each query of the dashboard, and that those of a healthy site have values."""
        for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
            for target in panel.get("targets", ()):
                expression = target["expr"].replace("$instance", ".*").replace("$__range", "1h")
                if self.prometheus.query(expression) or panel["title"] in EMPTY:
                    continue
                self.prometheus.eventually(functools.partial(self.prometheus.query, expression), panel["title"])
        deployed = 'sum(ingot_flows_total{flow="deploy",outcome="done"}) == 1'
        self.prometheus.eventually(functools.partial(self.prometheus.query, deployed), "the deployment is counted")

    def an_idle_node_is_overdue(self, uuid: str) -> None:
        self.prometheus.eventually(lambda: "IngotNodesOverdue" in self.prometheus.list_firing(), "a node is overdue")
        self.assertEqual([uuid], [node["uuid"] for node in self.site.user.get("/ingot/v1/overdue")["nodes"]])

    def a_dead_bmc_is_seen(self) -> None:
        self.assertNotIn("IngotBmcUnresponsive", self.prometheus.list_firing())
        self.site.rack.control.order_fault(self.site.rack.machines[1]["name"], "bmc_silent")
        self.prometheus.eventually(lambda: "IngotBmcUnresponsive" in self.prometheus.list_firing(), "a BMC is dead")

    def a_killed_conductor_is_missing(self) -> None:
        expected = {"IngotConductorMissing", "IngotProcessDown"}
        self.assertEqual(set(), expected & self.prometheus.list_firing())
        self.site.conductors[self.site.names[0]].stop(signal.SIGKILL)
        self.prometheus.eventually(lambda: expected <= self.prometheus.list_firing(), "a conductor is missing")
        missing = self.prometheus.query("max by (conductor) (ingot_conductor_online) == 0")
        self.assertEqual([self.site.names[0]], [one["metric"]["conductor"] for one in missing])
