"""All sides get the same configuration, and each operation is measured by one load."""

import collections
import pathlib

import bcrypt
import fixtures
import testtools

from benchmarks import operations, scenarios, sides
from benchmarks.sides import SETUPS, SIDES, Site


class ConfigurationTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable("INGOT_TEST_RABBIT_URL", "rabbit://broker"))

    def site(self, setup: str) -> Site:
        return Site(SETUPS[setup], self.directory, "mysql://database")

    def test_a_cluster_has_two_processes_and_the_same_options_on_every_side(self) -> None:
        site = self.site("cluster")
        options = sides.options(site)
        self.assertEqual(("rabbit://broker", 2), (options["DEFAULT"]["transport_url"], options["api"]["api_workers"]))
        self.assertTrue(options["conductor"]["automated_clean"])
        commands = {name: [command[0] for command in side.processes(site)] for name, side in SIDES.items()}
        expected = {
            "ingot": ["ingot-conductor", "ingot-api"],
            "release": ["ingot-conductor", "gunicorn"],
            "ironic": ["ironic-conductor", "gunicorn"],
        }
        self.assertEqual(expected, commands)
        for name in ("release", "ironic"):
            gunicorn = SIDES[name].processes(site)[1]
            self.assertEqual("2", gunicorn[gunicorn.index("--workers") + 1])

    def test_there_is_one_version_of_gunicorn(self) -> None:
        self.assertIn(sides.GUNICORN, sides.IRONIC.read_text().split())

    def test_alone_there_is_one_process_and_no_broker(self) -> None:
        site = self.site("alone")
        self.assertNotIn("transport_url", sides.options(site)["DEFAULT"])
        commands = [[command[0] for command in side.processes(site)] for side in SIDES.values()]
        self.assertEqual([["ingot"], ["ingot"], ["ironic"]], commands)

    def test_passwords_are_those_that_clients_send(self) -> None:
        site = self.site("http_basic")
        users = pathlib.Path(sides.options(site)["DEFAULT"]["http_basic_auth_user_file"])
        user, _, hashed = users.read_text().strip().partition(":")
        self.assertEqual(sides.USER, user)
        self.assertTrue(bcrypt.checkpw(sides.PASSWORD.encode(), hashed.encode()))
        self.assertIn("Authorization", site.headers())

    def test_https_has_a_certificate_on_both_servers(self) -> None:
        site = self.site("tls")
        certificate = sides.options(site)["api"]["cert_file"]
        self.assertTrue(site.url.startswith("https://") and pathlib.Path(certificate).is_file())
        self.assertIn(certificate, SIDES["ironic"].processes(site)[1])


class LoadsTest(testtools.TestCase):
    def test_each_operation_is_measured_by_one_load(self) -> None:
        measured = collections.Counter(name for load in scenarios.LOADS for name in load.operations)
        self.assertEqual(dict.fromkeys(operations.OPERATIONS, 1), dict(measured))
