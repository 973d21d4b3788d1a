"""The table of metrics: names as Prometheus wants them, labels with few values, and what each process serves of it."""

import re

import fixtures
import testtools

from ingot.common import metrics
from tests import metric_values

FEW_VALUES = {
    "boots": "what a boot script boots",
    "check": "parts of a process",
    "conductor": "conductors of a site",
    "driver": "hardware types that are enabled",
    "fault": "kinds of faults",
    "flow": "flows",
    "interface": "kinds of interfaces",
    "kind": "ways to use the database",
    "loader": "boot loaders that Ingot serves",
    "maintenance": "true and false",
    "method": "methods of HTTP, or of RPC",
    "mode": "what readers of consoles may do",
    "outcome": "ends that something can have",
    "pool": "pools of threads",
    "protocol": "protocols of BMCs",
    "provision_state": "provision states",
    "route": "routes of the API, with placeholders",
    "state": "uses of threads and connections",
    "status": "classes of statuses",
    "step": "steps that the conductor knows",
    "timer": "periodic work",
    "version": "the release that runs",
}
"""The labels that metrics may have, and what their values are. No node, user or address can be one."""


class TestTable(testtools.TestCase):
    def test_names_say_kind_and_unit(self) -> None:
        for row in metrics.TABLE.values():
            self.assertRegex(row.name, r"^(ingot|baremetal)_[a-z_]+[a-z]$")
            self.assertEqual(row.kind == "counter", row.name.endswith("_total"), row.name)
            self.assertEqual(row.kind == "histogram", row.name.endswith("_duration_seconds"), row.name)
            self.assertEqual(row.kind == "histogram", bool(row.buckets), row.name)

    def test_each_is_described_in_a_sentence(self) -> None:
        for row in metrics.TABLE.values():
            self.assertRegex(row.help, r"^(?:[A-Z0-9][^.]+|1, .+)\.$", row.name)

    def test_labels_have_few_values(self) -> None:
        used = {label for row in metrics.TABLE.values() for label in row.labels}
        self.assertEqual(set(), used - set(FEW_VALUES))

    def test_a_process_serves_its_own(self) -> None:
        api, conductor, both = (metrics.render(part).decode() for part in (*metrics.Part, metrics.Part.ALL))
        for row in metrics.TABLE.values():
            line = f"# TYPE {row.name} "
            if line in both:  # others have values only where something serves them
                self.assertEqual(metrics.Part.API in row.part, line in api, row.name)
                self.assertEqual(metrics.Part.CONDUCTOR in row.part, line in conductor, row.name)
        self.assertIn("process_resident_memory_bytes", api)
        self.assertNotRegex(both, re.compile(r"_created\b"))


class TestKnown(testtools.TestCase):
    def test_what_is_not_known_becomes_one_value(self) -> None:
        known = metrics.Known(["erase_devices"])
        self.assertEqual("erase_devices", known["erase_devices"])
        self.assertEqual({metrics.OTHER}, {known[f"step-{number}"] for number in range(100)})
        self.assertEqual(1, len(known))

    def test_there_is_a_limit(self) -> None:
        known = metrics.Known(map(str, range(1000)), most=10)
        self.assertEqual(10, len(known))


class TestScrapedGauges(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        # Services that other tests have had in this process are not asked.
        self.useFixture(fixtures.MonkeyPatch("ingot.common.metrics._ASKED.sources", {}))

    def test_a_source_that_fails_takes_no_other_along(self) -> None:
        def fail() -> list[metrics.Metric]:
            raise ValueError("a bug")

        logs = self.useFixture(fixtures.FakeLogger())
        for name, source in (("bad", fail), ("good", lambda: [metrics.NODES_LOCKED([((), 3)])])):
            metrics.ask(name, source)
        self.assertEqual(3, metric_values.read("ingot_nodes_locked"))
        self.assertIn("The metrics of bad cannot be read", logs.output)

    def test_the_source_that_came_last_is_asked(self) -> None:
        for count in (1, 2):
            metrics.ask("test", lambda count=count: [metrics.NODES_LOCKED([((), count)])])
        self.assertEqual(2, metric_values.read("ingot_nodes_locked"))
