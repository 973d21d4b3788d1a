"""The configurations and units that come with the package."""

import configparser
import contextlib
import io
import pathlib
import re

import fixtures
import testtools

from ingot.common.conf import opts
from ingot.db.cmd import status
from tests import server_case

PACKAGING = pathlib.Path(__file__).parents[3] / "packaging"
EXAMPLES = [*sorted((PACKAGING / "examples").glob("*.conf")), PACKAGING / "container/ingot.conf"]


class Examples(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.place / "htpasswd").touch()
        self.pem = pathlib.Path(server_case.make_certificate(self.place)).read_bytes()
        self.useFixture(fixtures.EnvironmentVariable("OS_DEFAULT__MY_IP", "192.0.2.10"))

    def judge(self, text: str) -> tuple[int, str]:
        """Return what ingot-status config ends with, and what it says, of a file whose other files are there."""
        for file in re.findall(r"= /etc/ingot/(tls/\S+)$", text, re.MULTILINE):
            place = self.place / file
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(self.pem)
        config = self.place / "ingot.conf"
        config.write_text(text.replace("/etc/ingot", str(self.place)))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            ended = status.main(["config", str(config)])
        self.config = config
        return ended, output.getvalue()

    def test_nothing_is_to_be_said_of_them(self) -> None:
        self.assertEqual(3, len(EXAMPLES))
        for example in EXAMPLES:
            ended, said = self.judge(example.read_text())
            self.assertEqual((0, 1), (ended, len(said.splitlines())), f"{example}: {said}")

    def test_loaders_of_the_network_trust_what_an_example_serves(self) -> None:
        for example in EXAMPLES:
            self.judge(example.read_text())
            conf = opts.load([], prog="test", files=[str(self.config)])
            asked = (bool(conf.boot_services.interfaces), opts.agent_api_url(conf).startswith("https:"))
            self.assertNotEqual((True, True), asked, example)

    def test_what_is_wrong_with_one_would_be_found(self) -> None:
        for wrong in ("[api]\nport = many\n", "[no-such-group]\noption = 1\n"):
            ended, _said = self.judge(f"{EXAMPLES[0].read_text()}\n{wrong}")
            self.assertNotEqual(0, ended, wrong)


class Units(testtools.TestCase):
    def test_one_process_that_runs_out_of_memory_does_not_stop_the_others(self) -> None:
        for unit in sorted((PACKAGING / "systemd").glob("*.service")):
            options = configparser.ConfigParser(strict=False, interpolation=None)
            options.read(unit)
            if options["Service"]["Type"] == "notify":
                self.assertEqual("continue", options["Service"].get("OOMPolicy"), unit)
