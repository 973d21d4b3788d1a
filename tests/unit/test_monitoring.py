"""Alerts and dashboard: they use metrics and labels that there are, and are what Prometheus and Grafana understand."""

import itertools
import json
import pathlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import testtools
import yaml

from ingot.common import metrics
from tests import grafana

FOLDER = pathlib.Path(__file__).parents[2] / "packaging" / "monitoring"
FOREIGN = {"up", "process_start_time_seconds", "process_open_fds", "process_max_fds"} | {
    "process_cpu_seconds_total", "process_resident_memory_bytes", "ALERTS",
}  # fmt: skip
"""Metrics of Prometheus itself, and of its library."""

ADDED = {"job", "instance", "le", "alertname", "alertstate"}
"""Labels that Prometheus adds."""

_METRIC = re.compile(r"\b((?:ingot|baremetal|process)_\w+|up|ALERTS)\b(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\b(?:by|ignoring|on) \(([^)]*)\)")
_MATCHED = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")


def find_row(name: str) -> metrics.Row | None:
    """Return the metric that a series belongs to."""
    return metrics.TABLE.get(name) or metrics.TABLE.get(re.sub("_(bucket|sum|count)$", "", name))


def list_mistakes(expression: str) -> Iterator[str]:
    """Yield what an expression names that there is not."""
    labels = set(ADDED)
    for name, matched in _METRIC.findall(expression):
        row = find_row(name)
        if row is None:
            if name not in FOREIGN:
                yield f"there is no {name}"
            continue
        if (row.kind == "histogram") != (row.name != name):
            yield f"{name} is a {row.kind}"
        labels |= {*row.labels}
        for label in set(_MATCHED.findall(matched)) - ADDED - {*row.labels}:
            yield f"{name} has no {label}"
    for group in _GROUPED.findall(expression):
        for label in set(re.findall(r"\w+", group)) - labels:
            yield f"no metric there has {label}"


class TestExpressions(testtools.TestCase):
    def test_mistakes_are_found(self) -> None:
        for expression, mistake in (
            ("rate(ingot_flow_total[5m])", "there is no ingot_flow_total"),
            ("ingot_flow_duration_seconds", "ingot_flow_duration_seconds is a histogram"),
            ('ingot_flows_total{node="a"}', "ingot_flows_total has no node"),
            ("sum by (step) (ingot_flows_total)", "no metric there has step"),
        ):
            self.assertEqual([mistake], list(list_mistakes(expression)))


class TestAlerts(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
        self.rules: list[dict[str, Any]] = [rule for group in groups for rule in group["rules"]]

    def test_they_use_what_there_is(self) -> None:
        found = {rule["alert"]: mistakes for rule in self.rules if (mistakes := list(list_mistakes(rule["expr"])))}
        self.assertEqual({}, found)

    def test_each_says_what_it_means_and_what_to_do(self) -> None:
        self.assertGreaterEqual(len(self.rules), 25)
        self.assertEqual([], [name for name, n in Counter(rule["alert"] for rule in self.rules).items() if n > 1])
        for rule in self.rules:
            name, notes = rule["alert"], rule["annotations"]
            self.assertRegex(name, "^Ingot[A-Z][A-Za-z]+$")
            self.assertEqual({"summary", "description", "action", "page"}, set(notes), name)
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"), name)
            self.assertEqual(f"monitoring.html#{name.lower()}", notes["page"])
            for text in (notes["description"], notes["action"]):
                self.assertRegex(text, r"[\w\"]\.$", name)

    def test_what_they_say_of_a_series_it_has(self) -> None:
        for rule in self.rules:
            named = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
            kept = {*ADDED, *itertools.chain(*(row.labels for row in map(find_row, self.names(rule)) if row))}
            grouped = [set(re.findall(r"\w+", group)) for group in _GROUPED.findall(rule["expr"]) if group != "state"]
            self.assertEqual(set(), named - (grouped[0] if grouped else kept), rule["alert"])

    def names(self, rule: dict[str, Any]) -> list[str]:
        return [name for name, _matched in _METRIC.findall(rule["expr"])]


class TestDashboard(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.document = json.loads((FOLDER / "dashboard.json").read_text())
        self.panels: list[dict[str, Any]] = self.document["panels"]

    def test_grafana_understands_all_of_it(self) -> None:
        self.assertEqual([], grafana.list_objections(self.document))

    def test_what_grafana_does_not_understand_is_found(self) -> None:
        for place, value in (
            (("panels", 1, "gridPos", "high"), 4),
            (("panels", 1, "gridPos", "h"), "4"),
            (("refesh",), "5s"),
            (("editable",), "yes"),
            (("panels", 1, "fieldConfig", "defaults", "thresholds", "mode"), "sometimes"),
            (("panels", 1, "targets", 0, "expression"), "up"),
        ):
            document = json.loads(json.dumps(self.document))
            *way, key = place
            inner = document
            for part in way:
                inner = inner[part]
            inner[key] = value
            self.assertNotEqual([], grafana.list_objections(document), place)

    def test_panels_use_what_there_is(self) -> None:
        texts = [target["expr"] for panel in self.panels for target in panel.get("targets", ())]
        texts += [variable["query"] for variable in self.document["templating"]["list"]]
        texts += [note["expr"] for note in self.document["annotations"]["list"]]
        self.assertGreater(len(texts), 40)
        self.assertEqual({}, {text: found for text in texts if (found := list(list_mistakes(text)))})

    def test_panels_are_described_and_do_not_overlap(self) -> None:
        self.assertEqual(len(self.panels), len({panel["id"] for panel in self.panels}))
        taken: set[tuple[int, int]] = set()
        for panel in self.panels:
            place = panel["gridPos"]
            across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
            cells = set(itertools.product(across, down))
            self.assertEqual((set(), True), (taken & cells, max(across) < 24), panel["title"])
            taken |= cells
            self.assertTrue(panel["type"] == "row" or panel["description"], panel["title"])


class TestMetricsInUse(testtools.TestCase):
    def test_no_metric_is_only_collected(self) -> None:
        """What no alert and no panel shows is of no use to an operator, and costs memory in each Prometheus."""
        text = "".join((FOLDER / name).read_text() for name in ("alerts.yaml", "dashboard.json"))
        used = {row.name for name, _matched in _METRIC.findall(text) if (row := find_row(name))}
        own = {name for name in metrics.TABLE if name.startswith("ingot_")}
        self.assertEqual(set(), own - used)
