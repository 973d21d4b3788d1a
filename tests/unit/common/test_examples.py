"""The complete configurations that come with the package: Ingot has nothing to say of them."""

import contextlib
import io
import pathlib
import re

import fixtures
import testtools

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
        return ended, output.getvalue()

    def test_nothing_is_to_be_said_of_them(self) -> None:
        self.assertEqual(3, len(EXAMPLES))
        for example in EXAMPLES:
            ended, said = self.judge(example.read_text())
            self.assertEqual((0, 1), (ended, len(said.splitlines())), f"{example}: {said}")

    def test_what_is_wrong_with_one_would_be_found(self) -> None:
        for wrong in ("[api]\nport = many\n", "[no-such-group]\noption = 1\n"):
            ended, _said = self.judge(f"{EXAMPLES[0].read_text()}\n{wrong}")
            self.assertNotEqual(0, ended, wrong)
