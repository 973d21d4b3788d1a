"""What keeps a command from starting: one message that names everything, before anything is done, and an exit code."""

import os
import pathlib
import subprocess
import sys
from unittest import mock

import fixtures
from oslo_config import cfg

from ingot.common import errors, masking
from ingot.common.conf import start
from ingot.rpcapi import transport
from tests.unit.common import test_configuration

FAKE = "[DEFAULT]\nenabled_hardware_types = fake-hardware\n"


class TestMistakes(test_configuration.FileCase):
    def starts(self, text: str, *commands: str) -> list[str]:
        """Return the lines that commands refuse to start with; each says the same."""
        self.write(f"{FAKE}state_path = {self.folder}/state\n{text}{test_configuration.LOCAL}")
        said = set()
        for command in commands:
            words = command.split()
            code, _output, problems = self.run_command(words[0], "--config-file", str(self.file), *words[1:])
            self.assertEqual(start.Exit.CONFIGURATION, code, problems)
            said.add(problems.replace(f"{words[0]}: ", ""))
        (lines,) = said
        return [line for line in lines.splitlines() if not line.endswith(" are to be corrected:")]

    def test_a_dollar_sign_that_names_no_option(self) -> None:
        """Passwords have them."""
        text = "[database]\nconnection = mysql+pymysql://ada:hun$ter2@127.0.0.1/x\n[pxe]\nkernel_append_params = $a\n"
        lines = self.starts(text, "ingot", "ingot-conductor", "ingot-api", "ingot-dbsync version")
        self.assertEqual(2, len(lines), lines)
        for number, line in zip((5, 7), lines, strict=True):
            self.assertIn(f"{self.file}:{number}: ", line)
            self.assertIn("Write $$", line)
        self.assertNotIn("ter2", " ".join(lines))

    def test_a_dollar_sign_in_the_environment(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("OS_DATABASE__CONNECTION", "mysql+pymysql://a:hun$ter2@b/c"))
        (line,) = self.starts("", "ingot-dbsync version", "ingot-conductor")
        self.assertIn("[database] connection", line)
        self.assertNotIn("ter2", line)

    def test_bad_values_of_libraries_in_the_environment(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("OS_DEFAULT__LOG_FILE", "$nope"))
        (line,) = self.starts("", "ingot", "ingot-dbsync version")
        self.assertIn("log_file: $ begins the name", line)

    def test_values_that_stand_for_others_are_judged_with_their_line(self) -> None:
        (line,) = self.starts("[api]\nport = $rpc_transport\n", "ingot")
        self.assertIn(f"{self.file}:5: [api] port", line)
        self.assertEqual(
            [], self.begin(f"{FAKE}host = $my_ip\n[api]\nunix_socket = $state_path/a$$b\n").refusals.messages
        )

    def test_a_byte_order_mark(self) -> None:
        self.file.write_bytes(b"\xef\xbb\xbf[DEFAULT]\ndebug = maybe\n")
        lines = self.assertRaises(
            errors.ConfigurationError, start.Start, "ingot", [f"--config-file={self.file}"]
        ).messages
        self.assertEqual(2, len(lines), lines)
        self.assertIn("byte order mark", lines[0])
        self.assertIn(":2: [DEFAULT] debug", lines[1])

    def test_options_before_the_first_group_are_one_mistake(self) -> None:
        (line,) = self.refused("host = a\ndebug = true\n")
        self.assertIn(":1: ", line)

    def test_advice_about_addresses_is_whole(self) -> None:
        (line,) = self.starts("[database]\nconnection = nonsense\n", "ingot-dbsync version")
        self.assertIn("mysql+pymysql://LOGIN@HOST/NAME", line)
        self.assertNotIn(masking.MASK, line)
        (line,) = self.starts("transport_url = nonsense\n", "ingot-conductor", "ingot-api")
        self.assertIn("rabbit://LOGIN@HOST:PORT/VIRTUAL_HOST", line)
        self.assertNotIn(masking.MASK, line)

    def test_a_database_without_its_driver(self) -> None:
        self.enterContext(mock.patch.dict("sys.modules", {"MySQLdb": None}))
        for url, missing in (("mysql://a:hunter2@b/c", "MySQLdb"), ("mysql+nope://a:hunter2@b/c", "nope")):
            (line,) = self.starts(f"[database]\nconnection = {url}\n", "ingot-dbsync version", "ingot-conductor")
            self.assertIn(missing, line)
            self.assertIn("mysql+pymysql://", line)
            self.assertNotIn("hunter2", line)
        (line,) = self.starts("[database]\nconnection = mysql+pymysql://a:hunter2@b:x/c\n", "ingot-dbsync version")
        self.assertNotIn("hunter2", line)

    def test_a_broker_of_another_kind(self) -> None:
        (line,) = self.starts("transport_url = kafka://a:hunter2@b:1/\n", "ingot-conductor", "ingot-api")
        self.assertIn("rabbit://", line)
        self.assertNotIn("hunter2", line)

    def test_brokers_that_cannot_be_spoken_to(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("oslo_config.cfg.CONF", cfg.ConfigOpts()))
        logger = self.useFixture(fixtures.FakeLogger())

        def refuse(**_options: object) -> None:
            raise ConnectionRefusedError("nothing listens")

        self.useFixture(fixtures.MonkeyPatch("ingot.rpcapi.transport.kombu_connection.Connection", refuse))
        self.assertFalse(transport.check_brokers(self.begin("").conf))
        self.assertIn("localhost:5672 (nothing listens)", logger.output)
        for option in ("ssl_ca_file", "ssl_cert_file", "ssl_key_file"):
            conf = self.begin(f"[oslo_messaging_rabbit]\nssl = true\n{option} = /none/file\n").conf
            refusal = self.assertRaises(errors.ConfigurationError, transport.check_brokers, conf)
            self.assertIn(f"[oslo_messaging_rabbit] {option}: '/none/file'", refusal.message)

    def test_everything_is_found_before_anything_is_done(self) -> None:
        text = (
            "auth_strategy = http_basic\nhttp_basic_auth_user_file = /none/users\ntransport_url = nonsense\n"
            "[api]\nenable_ssl_api = true\ncert_file = /none/cert\nkey_file = /none/key\n"
        )
        for command, count in (("ingot", 2), ("ingot-api", 3)):
            lines = self.starts(text, command)
            self.assertEqual(count, len(lines), lines)
            self.assertIn("/none/users", " ".join(lines))
            self.assertIn("/none/cert", " ".join(lines))
        self.assertEqual([], [path for path in (self.folder / "state").glob("*") if path.stat().st_size])

    def test_a_user_file_alone_and_an_address_that_is_not_ours(self) -> None:
        for text in (
            "auth_strategy = http_basic\nhttp_basic_auth_user_file = /none/users\n",
            "[api]\nunix_socket = /none/ingot.sock\n",
        ):
            (line,) = self.starts(text, "ingot")
            self.assertIn("No such file or directory", line)
            self.assertEqual([], [path for path in (self.folder / "state").glob("*") if path.stat().st_size])

    def test_tls_says_which_file_is_missing(self) -> None:
        certificate = self.folder / "cert.pem"
        certificate.write_text("")
        (line,) = self.starts("[api]\nenable_ssl_api = true\n", "ingot")
        self.assertIn("[api] cert_file: None. enable_ssl_api needs it", line)
        (line,) = self.starts(
            f"{test_configuration.LOCAL}enable_ssl_api = true\ncert_file = {certificate}\nkey_file = /none/key\n",
            "ingot",
        )
        self.assertIn("[api] key_file: '/none/key'", line)

    def test_a_database_that_is_away_is_named_once(self) -> None:
        self.write("[database]\nconnection = mysql+pymysql://ada:hunter2@127.0.0.1:1/ingot\n")
        code, _output, problems = self.run_command("ingot-dbsync", "--config-file", str(self.file), "version")
        self.assertEqual(start.Exit.TRY_AGAIN, code)
        self.assertNotIn("the log tells", problems)
        code, output, problems = self.run_command("ingot-status", "--config-file", str(self.file), "upgrade", "check")
        self.assertEqual(2, code)
        self.assertIn("127.0.0.1", output)
        self.assertLessEqual(len(problems.splitlines()), 1, problems)

    def test_a_conductor_that_does_not_start_leaves_nothing_behind(self) -> None:
        self.write(f"{FAKE}[database]\nconnection = mysql+pymysql://ada:hunter2@127.0.0.1:1/ingot\n")
        ended = subprocess.run(
            [pathlib.Path(sys.executable).parent / "ingot-conductor", "--config-file", self.file],
            capture_output=True,  # returns when the last process that writes has ended
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "OS_CONDUCTOR__HEARTBEAT_TIMEOUT": "300"},
        )
        self.assertEqual(start.Exit.TRY_AGAIN, ended.returncode, ended.stderr)
        self.assertLessEqual(len(ended.stderr.splitlines()), 2, ended.stderr)

    def test_several_processes_that_refuse_their_configuration_end(self) -> None:
        self.write(f"{FAKE}[database]\nconnection = sqlite:///{self.folder}/empty\n[conductor]\nworkers = 2\n")
        ended = subprocess.run(
            [pathlib.Path(sys.executable).parent / "ingot-conductor", "--config-file", self.file],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(start.Exit.CONFIGURATION, ended.returncode, ended.stderr)
        self.assertIn("ingot-dbsync upgrade", ended.stderr)
