"""What operators write into files, and what Ingot says of it: all at once, with what it means and what to write."""

import contextlib
import importlib.metadata
import io
import logging
import pathlib
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import fixtures
import testtools
from oslo_config import cfg

from ingot.api import cmd
from ingot.common import errors
from ingot.common.conf import files, ironic, opts, safety, sample, start
from ingot.common.conf.ironic import Verdict
from ingot.conductor.cmd import all_in_one, conductor
from ingot.db.cmd import dbsync, status
from tests import command_process, operators_files

LOCAL = "[api]\nhost_ip = 127.0.0.1\n"
COMMANDS: Mapping[str, Callable[[], int]] = {
    "ingot": all_in_one.main,
    "ingot-api": cmd.main,
    "ingot-conductor": conductor.main,
    "ingot-dbsync": dbsync.main,
    "ingot-status": status.main,
}


class FileCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.file = self.folder / "ingot.conf"
        self.useFixture(command_process.CommandProcess())

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def begin(self, text: str, *arguments: str) -> start.Start:
        self.write(text)
        return start.Start("ingot", [f"--config-file={self.file}", *arguments], logs=False)

    def refused(self, text: str, *arguments: str) -> list[str]:
        def read() -> None:
            self.begin(text, *arguments).finish()

        return self.assertRaises(errors.ConfigurationError, read).messages

    def check(self, text: str) -> tuple[int, str]:
        """Return exit status and output of ``ingot-status config``."""
        self.write(text)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            ended = status.main(["config", str(self.file)])
        return ended, output.getvalue()

    def run_command(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command in this process; return exit code, output and errors."""
        self.useFixture(fixtures.MonkeyPatch("sys.argv", [command, *arguments]))
        self.useFixture(fixtures.MonkeyPatch("oslo_config.cfg.CONF", cfg.ConfigOpts()))
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as problems:
            try:
                code = int(COMMANDS[command]())
            except SystemExit as exc:
                code = int(exc.code or 0)
        return code, output.getvalue(), problems.getvalue()


class TestFiles(FileCase):
    def test_every_bad_value_is_named_with_its_line(self) -> None:
        messages = self.refused(
            "[DEFAULT]\ndebug = maybe\nhost = two words\n[api]\nport = 99999\n[database]\nmax_pool_size = many\n"
        )
        for number, part in ((2, "debug = maybe"), (3, "host = two words"), (5, "port = 99999"), (7, "max_pool_size")):
            self.assertIn(f"{self.file}:{number}: ", " ".join(messages))
            self.assertIn(part, " ".join(messages))
        self.assertEqual(4, len(messages))

    def test_every_line_that_cannot_be_read_is_named_without_what_may_be_a_secret(self) -> None:
        messages = self.refused(" early\nx = 1\n[DEFAULT]\npassword hunter2\n[broken\n")
        self.assertEqual([1, 2, 4, 5], [int(message.split(":")[1]) for message in messages])
        self.assertNotIn("hunter2", " ".join(messages))

    def test_files_that_are_not_there_or_no_text(self) -> None:
        for argument in (f"--config-file={self.folder}/none", f"--config-file={self.folder}"):
            (message,) = self.assertRaises(errors.ConfigurationError, start.Start, "ingot", [argument]).messages
            self.assertIn("cannot be read", message)
        missing = self.assertRaises(
            errors.ConfigurationError,
            start.Start,
            "ingot",
            [f"--config-dir={self.folder}/none", "--config-file=/dev/null"],
        )
        self.assertIn(f"{self.folder}/none", missing.message)
        self.file.write_bytes(b"[DEFAULT]\nhost = \xff\n")
        self.assertIn("UTF-8", self.refused_file())

    def refused_file(self) -> str:
        return self.assertRaises(
            errors.ConfigurationError, start.Start, "ingot", [f"--config-file={self.file}"]
        ).message

    def test_the_environment_and_contradictions_are_in_the_same_message(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("OS_API__PORT", "x"))
        messages = self.refused("[conductor]\nheartbeat_timeout = 3\nworkers = 0\n")
        self.assertEqual(3, len(messages), messages)
        for part in ("workers", "[api] port, as it is set in the environment", "heartbeat_timeout"):
            self.assertIn(part, " ".join(messages))

    def test_options_of_glance_are_there_if_one_is_set(self) -> None:
        self.assertNotIn("glance", self.begin(LOCAL).finish())
        conf = self.begin(f"{LOCAL}[glance]\nauth_type = none\n").finish()
        self.assertEqual(("none", "image", 20), (conf.glance.auth_type, conf.glance.service_type, conf.glance.timeout))
        self.useFixture(fixtures.EnvironmentVariable("OS_GLANCE__TIMEOUT", "soon"))
        (message,) = self.refused(LOCAL)
        self.assertIn("[glance] timeout, as it is set in the environment: ", message)

    def test_options_of_the_inspection_service_are_there_with_its_interface(self) -> None:
        service = "[inspector]\nauth_type = none\nendpoint_override = http://127.0.0.1:5050\ntimeout = {}\n"
        self.assertNotIn("auth_type", self.begin(LOCAL + service.format(5)).finish().inspector)
        enabled = f"[DEFAULT]\nenabled_inspect_interfaces = inspector,no-inspect\n{LOCAL}"
        conf = self.begin(enabled + service.format(5)).finish()
        self.assertEqual(("baremetal-introspection", 5), (conf.inspector.service_type, conf.inspector.timeout))
        (message,) = self.refused(enabled + service.format("soon"))
        self.assertIn("timeout", message)

    def test_secrets_are_not_shown(self) -> None:
        self.assertNotIn(
            "hunter2", " ".join(self.refused("[oslo_messaging_rabbit]\nrabbit_port = x\n[api]\nport = x\n"))
        )

    def test_continued_lines_quotes_and_folders(self) -> None:
        (self.folder / "more").mkdir()
        (self.folder / "more" / "b.conf").write_text("[DEFAULT]\nhots = 1\n")
        begun = self.begin(
            "[DEFAULT]\nhost = 'a'\nenabled_hardware_types = ipmi,\n  fake-hardware\n",
            f"--config-dir={self.folder}/more",
        )
        self.assertEqual(["ipmi", "fake-hardware"], begun.conf.enabled_hardware_types)
        self.assertEqual(["hots"], [finding.names[0] for finding in begun.list_findings()])


class TestFindings(FileCase):
    def findings(self, text: str) -> dict[str, tuple[Verdict, str]]:
        return {
            name: (finding.verdict, finding.advice)
            for finding in self.begin(text).list_findings()
            for name in finding.names
        }

    def test_what_is_unknown_says_what_may_have_been_meant(self) -> None:
        found = self.findings("[DEFAULT]\nhots = 1\nautomated_clean = 1\nfrobnicate = 1\n[frob]\nx = 1\n")
        self.assertEqual({Verdict.UNKNOWN}, {verdict for verdict, _advice in found.values()})
        self.assertIn("Did you mean host?", found["hots"][1])
        self.assertIn("[conductor]", found["automated_clean"][1])
        self.assertIn("no such group", found["x"][1])

    def test_options_of_libraries_drivers_and_logins_are_known(self) -> None:
        text = (
            "[DEFAULT]\ndebug = true\nlog_dir = /tmp\ntransport_url = fake:/\n[database]\nmax_retries = 3\n"
            "[oslo_messaging_rabbit]\nrabbit_quorum_queue = true\n[oslo_policy]\npolicy_file = x\n"
            "[keystone_authtoken]\nauth_type = password\nauth_url = http://a\nusername = u\nservice_token_roles = a\n"
            "[glance]\nauth_type = v3applicationcredential\napplication_credential_id = x\n"
        )
        self.assertEqual({}, self.findings(text))

    def test_options_of_a_service_in_the_same_environment_are_not_read(self) -> None:
        """DevStack installs all services into one: some cannot be imported here, and none has options of Ingot."""
        about = self.folder / "neutron-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: neutron\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[oslo.config.opts]\nneutron = module_that_is_not_there:list_opts\n")
        self.useFixture(fixtures.MonkeyPatch("sys.path", [str(self.folder), *sys.path]))
        found = self.findings("[neutron]\nurl_timeout = 3\n[frob]\nx = 1\n")
        self.assertEqual(Verdict.UNKNOWN, found["x"][0])

    def test_what_ironic_has_says_what_it_means(self) -> None:
        found = self.findings(
            "[conductor]\nnode_history = false\nsoft_power_off_timeout = 9\ndeploy_kernel = http://k\n"
            "[redfish]\nuse_swift = 1\n"
            "[neutron]\nretries = 3\ncleaning_network = c\n"
        )
        verdicts = {name: verdict for name, (verdict, _advice) in found.items()}
        self.assertEqual(Verdict.IGNORED, verdicts["node_history"])
        self.assertEqual(Verdict.UNSUPPORTED, verdicts["soft_power_off_timeout"])
        self.assertEqual(Verdict.RENAMED, verdicts["deploy_kernel"])
        self.assertEqual(Verdict.UNSUPPORTED, verdicts["use_swift"])
        self.assertEqual(Verdict.IGNORED, verdicts["retries"])
        self.assertNotIn("cleaning_network", verdicts)

    def test_what_is_switched_off_is_not_missed(self) -> None:
        for value, verdict in (("False", Verdict.IGNORED), ("0", Verdict.IGNORED), ("true", Verdict.UNSUPPORTED)):
            self.assertEqual(verdict, self.findings(f"[redfish]\nuse_swift = {value}\n")["use_swift"][0], value)

    def test_an_address_of_ironics_web_server_is_none_of_the_api(self) -> None:
        text = "[deploy]\nhttp_url = http://192.0.2.5:6180\nexternal_http_url = {}\n[api]\nport = 6385\n"
        verdict, advice = self.findings(text.format("http://198.51.100.5:6180"))["external_http_url"]
        self.assertEqual(Verdict.DIFFERENT, verdict)
        self.assertIn("names the API", advice)
        self.assertEqual({}, self.findings(text.format("http://198.51.100.5:6385")))
        proxy = "public_endpoint = https://api.example.com\n"
        self.assertEqual({}, self.findings(text.format("https://bmc.example.com") + proxy))
        self.assertEqual({}, self.findings("[deploy]\nexternal_http_url = http://198.51.100.5\n"))

    def test_values_that_cannot_be_used_end_no_start(self) -> None:
        """They are mistakes of their own, or work nowhere."""
        external = "[deploy]\nhttp_url = http://192.0.2.5:6180\nexternal_http_url = {}\n"
        first_script = "[deploy]\nhttp_root = {}\n[pxe]\ntftp_root = /x\n"
        for text, expected in (
            (external.format("http://h:99999"), {"external_http_url"}),
            (external.format("http://[h"), set()),
            (external.format("$nothing"), set()),
            (external.format(""), set()),
            (f"{external.format('http://h')}[api]\npublic_endpoint = http://h:x/\n", {"external_http_url"}),
            (first_script.format("$nothing"), {"tftp_root"}),
            (first_script.format(""), {"tftp_root"}),
            (f"[pxe]\nipxe_config_template = {self.folder}\n", set()),
        ):
            with self.subTest(text):
                self.assertEqual(expected, {*self.findings(f"[DEFAULT]\nstate_path = /data\n{text}")})

    def test_the_first_script_of_ironics_web_server_leads_to_the_api(self) -> None:
        text = "[DEFAULT]\nstate_path = /data\nmy_ip = 192.0.2.5\n[deploy]\n"
        text += f"http_root = {self.folder}\n[pxe]\ntftp_root = /shared/tftpboot\n"
        verdict, advice = self.findings(text)["http_root"]
        self.assertEqual(Verdict.DIFFERENT, verdict)
        self.assertIn(f"{self.folder}/boot.ipxe", advice)
        (chain,) = re.findall(r"chain http://\S+/boot.ipxe", advice)
        (self.folder / "boot.ipxe").write_text("#!ipxe\nchain boot/ipxe/${mac}\n")
        self.assertIn("http_root", self.findings(text))
        (self.folder / "boot.ipxe").write_text(f"#!ipxe\n{chain}\n")
        self.assertEqual({"tftp_root"}, {*self.findings(text)})
        (self.folder / "boot.ipxe").unlink()
        self.assertNotIn("http_root", self.findings(f"{text}[boot_services]\ninterfaces = eth1\n"))

    def test_a_template_that_fetches_what_only_ironic_has(self) -> None:
        template = self.folder / "ipxe_config.template"
        text = f"[pxe]\nipxe_config_template = {template}\n"
        template.write_text("#!ipxe\ninitrd {{ pxe_options.ari_path }}\ninitrd ../ipa-cacert-bundle\nboot\n")
        verdict, advice = self.findings(text)["ipxe_config_template"]
        self.assertEqual(Verdict.DIFFERENT, verdict)
        self.assertIn("api_ca_file", advice)
        template.write_text("#!ipxe\ninitrd {{ pxe_options.ari_path }}\nboot\n")
        self.assertEqual({}, self.findings(text))

    def test_a_key_is_not_made_where_no_service_keeps_it_without_a_word(self) -> None:
        def find(text: str) -> set[str]:
            begun = self.begin(text)
            begun.conf.set_default("state_path", str(place))
            return {line for line in map(str, begun.list_findings()) if "state_path" in line}

        place = self.folder / "state"
        text = "[conductor]\nnode_history = false\n"
        (line,) = find(text)
        self.assertIn(f"[DEFAULT] state_path: different. Without it, {place} gets the key", line)
        for chosen in ("[DEFAULT]\nstate_path = /data\n", "[secrets]\nkey_file = /data/key\n"):
            self.assertEqual(set(), find(text + chosen))
        self.assertEqual(set(), find("[api]\nport = 6385\n"))
        with fixtures.EnvironmentVariable("OS_DEFAULT__STATE_PATH", "/data"):
            self.assertEqual(set(), find(text))
        place.mkdir()  # as packages and images do
        self.assertEqual(set(), find(text))

    def test_a_service_logs_each_of_them_when_it_starts(self) -> None:
        logger = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.begin("[DEFAULT]\nhots = 1\n[conductor]\nnode_history = false\n").finish()
        self.assertIn("hots: unknown. Did you mean host?", logger.output)
        self.assertIn("node_history: ignored.", logger.output)

    def test_credentials_of_services_that_are_not_used_are_refused_or_reported(self) -> None:
        login = "auth_type = password\nauth_url = http://k\n"
        self.assertIn("never connected", " ".join(self.refused(f"[neutron]\n{login}")))
        self.begin(f"{LOCAL}[DEFAULT]\nenabled_network_interfaces = flat,noop\n[neutron]\n{login}").finish()
        different = self.findings(f"[cinder]\n{login}")["auth_url"]
        self.assertEqual(Verdict.DIFFERENT, different[0])
        self.begin(f"{LOCAL}[DEFAULT]\nenabled_storage_interfaces = cinder,noop\n[cinder]\n{login}").finish()
        for group in ("swift",):
            self.assertEqual(Verdict.UNSUPPORTED, self.findings(f"[{group}]\n{login}")["auth_url"][0])

    def test_no_row_is_about_an_option_that_ingot_has(self) -> None:
        own = {(group, opt.dest) for group, options in opts.GROUPS.items() for opt in options}
        self.assertEqual(set(), own & set(ironic._BY_OPTION))
        self.assertEqual(set(), set(opts.GROUPS) & set(ironic.GROUPS))

    def test_no_row_says_that_a_driver_is_missing_which_is_there(self) -> None:
        advice = " ".join(text for _verdict, text in (*ironic.GROUPS.values(), *ironic._BY_OPTION.values()))
        missing = set(re.findall(r"has no (?:hardware type|\w+ interface) ([\w-]+)", advice))
        own = {
            entry.name for entry in importlib.metadata.distribution("ingot").entry_points if "hardware" in entry.group
        }
        self.assertIn("anaconda", missing)
        self.assertIn("idrac", own)
        self.assertEqual(set(), missing & own)


class TestSafety(FileCase):
    def check_api(self, text: str, own_server: bool = True) -> start.Start:
        begun = self.begin(text)
        safety.check_api(begun, own_server)
        return begun

    def test_without_a_strategy_only_this_host_is_served(self) -> None:
        begun = self.check_api(LOCAL)
        self.assertEqual(([], "noauth"), (begun.refusals.messages, begun.conf.auth_strategy))
        begun = self.check_api("[api]\nunix_socket = /run/ingot.sock\n")
        self.assertEqual("noauth", begun.conf.auth_strategy)
        for begun in (self.check_api(""), self.check_api(LOCAL, own_server=False)):
            (message,) = begun.refusals.messages
            for part in ("auth_strategy = http_basic", "http_basic_auth_user_file = ", "host_ip = 127.0.0.1"):
                self.assertIn(part, message)

    def test_a_strategy_that_was_forgotten_is_named(self) -> None:
        login = "[keystone_authtoken]\nauth_type = password\nauth_url = http://k\n"
        (message,) = self.check_api(LOCAL + login).refusals.messages
        self.assertIn("auth_strategy = keystone", message)

    def test_noauth_for_others_is_warned_about(self) -> None:
        self.assertEqual([], self.check_api(f"[DEFAULT]\nauth_strategy = noauth\n{LOCAL}").warnings)
        (warning,) = self.check_api("[DEFAULT]\nauth_strategy = noauth\n").warnings
        self.assertIn("administrator", warning)

    def test_noauth_for_all_pages_is_warned_about(self) -> None:
        for origin, count in (("https://horizon.example.com", 0), ("*", 1)):
            warnings = self.check_api(f"{LOCAL}[cors]\nallowed_origin = {origin}\n").warnings
            self.assertEqual(count, len(warnings), warnings)
            self.assertTrue(all("[cors] allowed_origin = *" in one for one in warnings))

    def test_real_machines_are_not_sent_to_themselves(self) -> None:
        mine = "[DEFAULT]\nmy_ip = 127.0.0.1\n"
        for text, is_refused in (
            (mine, True),
            ("[DEFAULT]\nmy_ip = ::1\n", True),
            ("[DEFAULT]\nmy_ip = 192.0.2.1\n", False),
            (f"{mine}enabled_hardware_types = fake-hardware\n", False),
            (f"{mine}[service_catalog]\nendpoint_override = http://127.0.0.1:6385\n", False),
        ):
            begun = self.begin(text)
            safety.check_hardware(begun)
            self.assertEqual(is_refused, bool(begun.refusals.messages), text)

    def test_defaults(self) -> None:
        conf = opts.load([], prog="ingot", files=[])
        self.assertIsNone(conf.auth_strategy)
        self.assertEqual(["ipmi", "redfish"], conf.enabled_hardware_types)
        self.assertTrue(conf.conductor.force_power_state_during_sync)

    def test_logs_are_for_the_service_and_its_group(self) -> None:
        place = self.folder / "logs" / "new"
        code = (
            "import sys\nfrom ingot.common.conf import start\n"
            f"start.Start('ingot', ['--config-file=/dev/null', '--log-dir={place}', '--log-file=ingot.log'])\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (place, place / "ingot.log")]
        self.assertEqual([0o750, 0o640], modes)

    def test_a_log_that_cannot_be_written_is_refused(self) -> None:
        self.write("[DEFAULT]\nlog_file = /dev/null/ingot.log\n")
        code, _output, problems = self.run_command("ingot-dbsync", "--config-file", str(self.file), "version")
        self.assertEqual(start.Exit.CONFIGURATION, code)
        self.assertIn("ingot-dbsync: Configuration option log_dir and log_file", problems)


class TestTemplates(FileCase):
    """Each is refused in one message that names everything, and starts without what that names."""

    def refused_parts(self, groups: operators_files.Groups, parts: Sequence[str]) -> str:
        ended, output = self.check(operators_files.render(groups))
        self.assertEqual(2, ended, output)
        refusals = output.partition("\n\n")[2].partition("\n\n")[0]
        self.assertEqual(len(parts), len(refusals.splitlines()) - 1, refusals)
        for part in parts:
            self.assertIn(part, refusals)
        return output

    def test_ironic_image(self) -> None:
        for name, variant in operators_files.IRONIC_IMAGE_VARIANTS.items():
            groups = operators_files.merge(operators_files.IRONIC_IMAGE, variant)
            ended, output = self.check(operators_files.render(groups))
            refusals = [line for line in output.splitlines() if "Configuration option" in line]
            missing = [line for line in refusals if "/conf/" not in line and "/certs/" not in line]
            self.assertEqual([], missing, f"{name}: only files of that container are missed")
            self.assertEqual(2 if refusals else 1, ended, output)
            for part in ("[redfish] use_swift", "[conductor] deploy_kernel", "[conductor] node_history"):
                self.assertIn(part, output)

    def test_bifrost(self) -> None:
        self.refused_parts(operators_files.BIFROST, ("/etc/ironic/htpasswd",))

    def test_kolla_ansible(self) -> None:
        output = self.refused_parts(
            operators_files.KOLLA_ANSIBLE, ("Write auth_strategy = keystone", "[neutron] auth_url, auth_type")
        )
        for part in ("[cinder]", "[pxe_filter]"):
            self.assertIn(part, output)
        self.assertNotIn("[nova]", output)

    def test_their_values_count(self) -> None:
        conf = self.begin(operators_files.render(operators_files.IRONIC_IMAGE)).conf
        self.assertEqual("192.0.2.5", conf.host)
        self.assertEqual("http://192.0.2.5:6180/images/ipa.kernel", conf.deploy.deploy_kernel)
        self.assertEqual(["/shared/html/images", "/templates"], conf.deploy.file_url_allowed_paths)
        self.assertEqual("parse-lldp", conf.inspector.hooks[-1])
        self.assertIn("x86_64", conf.deploy.deploy_kernel_by_arch)
        self.assertEqual({"management.clear_job_queue": 90}, conf.conductor.verify_step_priority_override)
        self.assertEqual(("present", False), (conf.inspector.keep_ports, conf.inspector.require_managed_boot))
        self.assertEqual("/shared/log/ironic/deploy", conf.agent.deploy_logs_local_path)


class TestCommands(FileCase):
    def test_each_says_all_mistakes_with_its_name_and_no_traceback(self) -> None:
        self.write("[DEFAULT]\nhost = a b\n[api]\nport = x\n")
        for command, more in (("ingot", []), ("ingot-api", []), ("ingot-conductor", []), ("ingot-dbsync", ["version"])):
            code, _output, problems = self.run_command(command, "--config-file", str(self.file), *more)
            self.assertEqual(start.Exit.CONFIGURATION, code, problems)
            lines = problems.splitlines()
            self.assertGreaterEqual(len(lines), 3)
            for line in lines:
                self.assertTrue(line.startswith(f"{command}: "), line)

    def test_each_says_in_its_help_what_it_is_and_where_it_reads(self) -> None:
        self.write("broken")
        for command in COMMANDS:
            code, output, problems = self.run_command(command, "--config-file", str(self.file), "--help")
            self.assertEqual((0, ""), (code, problems))
            text = " ".join(output.split())
            for part in ("/etc/ingot", "OS_<GROUP>__<OPTION>", "database"):
                self.assertIn(part, text, command)

    def test_a_database_that_is_away_is_worth_another_try_and_a_wrong_one_is_not(self) -> None:
        self.write("[database]\nconnection = mysql+pymysql://ada:hunter2@127.0.0.1:1/ingot\n")
        asked = ("ingot-dbsync", "--config-file", str(self.file), "version")
        code, _output, away = self.run_command(*asked)
        self.assertEqual(start.Exit.TRY_AGAIN, code, away)
        self.assertIn("127.0.0.1", away)
        self.assertNotIn("hunter2", away)
        (self.folder / "x.sqlite").write_text("no database at all")
        self.write(f"[database]\nconnection = sqlite:///{self.folder}/x.sqlite\n")
        code, _output, wrong = self.run_command(*asked)
        self.assertEqual(start.Exit.CONFIGURATION, code, wrong)
        self.assertIn("file is not a database", wrong)
        self.assertNotIn("Traceback", away + wrong)

    def test_an_address_in_use_may_become_free(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.write(
                f"[DEFAULT]\nstate_path = {self.folder}\nenabled_hardware_types = fake-hardware\n"
                f"[api]\nhost_ip = 127.0.0.1\nport = {other.getsockname()[1]}\n"
            )
            code, _output, problems = self.run_command("ingot", "--config-file", str(self.file))
        self.assertEqual(start.Exit.TRY_AGAIN, code, problems)
        self.assertIn("ingot: Configuration option [api] host_ip and port", problems)

    def test_files_are_judged_with_an_exit_code(self) -> None:
        self.assertEqual(0, self.check(f"[DEFAULT]\nstate_path = /data\n[conductor]\nnode_history = false\n{LOCAL}")[0])
        self.assertEqual(1, self.check(f"[DEFAULT]\nhots = x\n{LOCAL}")[0])
        self.assertEqual(1, self.check("[DEFAULT]\nauth_strategy = noauth\n")[0])
        ended, output = self.check("[api]\nport = x\n[DEFAULT]\nenabled_hardware_types = redfisch\n")
        self.assertEqual(2, ended)
        for part in ("port = x", "redfisch", "auth_strategy"):
            self.assertIn(part, output)
        self.assertEqual(2, self.check("nonsense")[0])

    def test_the_sample_has_only_what_has_an_effect_and_explains_it(self) -> None:
        text = sample.render()
        self.assertIn("[oslo_messaging_rabbit]", text)
        for part in ("No description provided", "kafka"):
            self.assertNotIn(part, text)

    def test_libraries_that_warn_of_each_other_are_silent(self) -> None:
        code = "import ingot.conductor.cmd.all_in_one"
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        self.assertEqual("", shown.stderr)

    def test_a_setting_says_where_it_stands(self) -> None:
        setting = files.Setting("ingot.conf", 3, "api", "port", "1")
        self.assertEqual(("ingot.conf:3", "[api] port"), (setting.where, setting.option))
