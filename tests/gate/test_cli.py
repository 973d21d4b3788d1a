"""The commands of ``openstack baremetal``, as its users type them, against a running Ingot.

The newest client of the package index speaks the newest version of the API that it knows.
"""

import concurrent.futures
import json
from typing import Any, ClassVar

import testtools

from ingot.common import interfaces
from tests.gate import environments
from tests.gate.client import NEWEST, Ingot, programs

PASSWORD = "correct horse"
BIOS = {"interface": "bios", "step": "apply_configuration", "args": {"settings": [{"name": "VMX", "value": "on"}]}}
RESET = {"interface": "bios", "step": "factory_reset", "args": {}}
HOLD = {"interface": "power", "step": "hold", "args": {}}
EARLY = [{**BIOS, "priority": 150}]
LATE = [{**RESET, "priority": 110}]


def text(*steps: dict[str, Any], **more: Any) -> str:
    """Return steps as an operator writes them on the command line, with ``more`` in each."""
    return json.dumps([{**step, **more} for step in steps])


class CliTest(testtools.TestCase):
    """The tests of a class share one Ingot; each has nodes, templates and runbooks of its own."""

    password: ClassVar[str | None] = None
    ingot: ClassVar[Ingot]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.ingot = cls.enterClassContext(Ingot(cls.password))

    def setUp(self) -> None:
        super().setUp()
        self.cli = self.ingot.cli

    def enroll(self, name: str) -> None:
        self.cli(f"node create --driver fake-hardware --name {name}")
        self.cli(f"node manage {name}")
        self.ingot.reach(name, "manageable")

    def events(self, node: str) -> list[str]:
        listed = self.cli.show(f"node history list {node}")
        return [entry["event"] for entry in listed]

    def check_refusals(self, refusals: dict[str, tuple[str, ...]]) -> None:
        """Run commands that must be refused: each command line, and what its error message must say.

        They run at once, as the client repeats for ten seconds what is refused as a conflict.
        """
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            complaints = dict(zip(refusals, pool.map(self.cli.refused, refusals), strict=True))
        for words, expected in refusals.items():
            for part in expected:
                self.assertIn(part, complaints[words], words)


class TestDeployTemplates(CliTest):
    """Specification 003: the five commands, by name and by uuid."""

    def create(self, name: str) -> dict[str, Any]:
        created: dict[str, Any] = self.cli.show(f"deploy template create {name} --steps", text(*EARLY))
        return created

    def test_steps_are_text_a_file_or_standard_input(self) -> None:
        file = self.ingot.directory / "steps.json"
        file.write_text(text(*EARLY))
        ways: dict[str, tuple[tuple[str, ...], str | None]] = {
            "CUSTOM_TEXT": ((text(*EARLY),), None),
            "CUSTOM_FILE": ((str(file),), None),
            "CUSTOM_INPUT": (("-",), text(*EARLY)),
        }
        for name, (steps, given) in ways.items():
            created = self.cli.show(f"deploy template create {name} --steps", *steps, given=given)
            self.assertEqual((name, EARLY), (created["name"], created["steps"]))
        changes: dict[str, tuple[tuple[str, ...], str | None]] = {
            "CUSTOM_TEXT": ((text(*LATE),), None),
            "CUSTOM_INPUT": (("-",), text(*LATE)),
        }
        for name, (steps, given) in changes.items():
            self.cli(f"deploy template set {name} --steps", *steps, given=given)
            self.assertEqual(LATE, self.cli.show(f"deploy template show {name}")["steps"])
        self.cli("deploy template set CUSTOM_INPUT --steps", str(file))
        self.assertEqual(EARLY, self.cli.show("deploy template show CUSTOM_INPUT")["steps"])

    def test_is_listed_and_shown_by_name_and_uuid(self) -> None:
        created = self.create("CUSTOM_SHOWN")
        for ident in ("CUSTOM_SHOWN", created["uuid"]):
            self.assertEqual(created, self.cli.show(f"deploy template show {ident}"))
        self.assertIn({"uuid": created["uuid"], "name": "CUSTOM_SHOWN"}, self.cli.show("deploy template list"))
        self.assertIn(created, self.cli.show("deploy template list --long"))
        listed = self.cli.show("deploy template list --fields name steps")
        self.assertIn({"name": "CUSTOM_SHOWN", "steps": EARLY}, listed)

    def test_is_changed_and_deleted_by_name_and_uuid(self) -> None:
        named, known = self.create("CUSTOM_FIRST"), self.create("CUSTOM_SECOND")
        self.cli("deploy template set CUSTOM_FIRST --name CUSTOM_THIRD --extra rack=7")
        self.cli(f"deploy template set {known['uuid']} --name CUSTOM_FOURTH --steps", text(*LATE))
        changed = self.cli.show(f"deploy template show {named['uuid']}")
        self.assertEqual(("CUSTOM_THIRD", {"rack": 7}, EARLY), (changed["name"], changed["extra"], changed["steps"]))
        self.assertEqual(LATE, self.cli.show("deploy template show CUSTOM_FOURTH")["steps"])
        self.cli("deploy template unset CUSTOM_THIRD --extra rack")
        self.assertEqual({}, self.cli.show("deploy template show CUSTOM_THIRD")["extra"])
        said = self.cli(f"deploy template delete CUSTOM_THIRD {known['uuid']}")
        self.assertIn("Deleted deploy template CUSTOM_THIRD", said)
        names = {one["name"] for one in self.cli.show("deploy template list")}
        self.assertEqual(set(), names & {"CUSTOM_THIRD", "CUSTOM_FOURTH"})

    def test_what_is_wrong_is_said(self) -> None:
        self.create("CUSTOM_TAKEN")
        self.create("CUSTOM_OTHER")
        steps = json.dumps(EARLY, separators=(",", ":"))
        twice = json.dumps(2 * EARLY, separators=(",", ":"))
        self.check_refusals(
            {
                f"deploy template create CUSTOM_TAKEN --steps {steps}": ("CUSTOM_TAKEN already exists", "HTTP 409"),
                "deploy template set CUSTOM_OTHER --name CUSTOM_TAKEN": ("CUSTOM_TAKEN already exists", "HTTP 409"),
                f"deploy template create taken --steps {steps}": ("'taken'", "CUSTOM_", "HTTP 400"),
                "deploy template create CUSTOM_X --steps []": ("steps", "HTTP 400"),
                "deploy template create CUSTOM_X --steps {": ("cannot be parsed",),
                'deploy template create CUSTOM_X --steps [{"interface":"bios"}]': ("'step'", "HTTP 400"),
                f"deploy template create CUSTOM_X --steps {twice}": ("apply_configuration", "HTTP 400"),
                "deploy template create CUSTOM_X": ("--steps",),
                "deploy template show CUSTOM_NONE": ("CUSTOM_NONE", "HTTP 404"),
                "deploy template set CUSTOM_NONE --name CUSTOM_X": ("CUSTOM_NONE", "HTTP 404"),
                "deploy template delete CUSTOM_NONE": ("CUSTOM_NONE", "HTTP 404"),
            }
        )
        names = {one["name"] for one in self.cli.show("deploy template list")}
        self.assertEqual(set(), names & {"CUSTOM_X", "taken"})


class TestDrivers(CliTest):
    """Specification 004: the type of drivers, their interfaces, and the interfaces of nodes."""

    def test_the_list_tells_the_type_and_is_limited_by_it(self) -> None:
        expected = {"fake-hardware": "dynamic", "ipmi": "dynamic", "example_classic": "classic"}
        listed = self.cli.show("driver list --long")
        self.assertEqual(expected, {driver["name"]: driver["type"] for driver in listed})
        for requested in ("classic", "dynamic"):
            limited = self.cli.show(f"driver list --type {requested} --fields name type")
            named = {driver["name"]: driver["type"] for driver in limited}
            self.assertEqual({name: kind for name, kind in expected.items() if kind == requested}, named)
        self.assertIn("fake-hardware", self.cli("driver list"))

    def test_a_driver_is_shown_with_what_is_default_and_enabled(self) -> None:
        dynamic, classic = (self.cli.show(f"driver show {name}") for name in ("fake-hardware", "example_classic"))
        for kind in interfaces.TYPES:
            default, enabled = f"default_{kind}_interface", f"enabled_{kind}_interfaces"
            self.assertIn(dynamic[default], dynamic[enabled].split(", "))
            self.assertEqual((None, None), (classic[default], classic[enabled]))
        self.assertEqual("dynamic", dynamic["type"])
        self.assertEqual("fake, direct, ramdisk, custom-agent", dynamic["enabled_deploy_interfaces"])
        self.assertEqual(("classic", "conductor-0"), (classic["type"], classic["hosts"]))
        self.assertIn("HTTP 404", self.cli.refused("driver show steam"))

    def test_a_node_is_created_with_an_argument_for_each_interface(self) -> None:
        other = {"bios": "no-bios", "boot": "ipxe", "deploy": "direct", "raid": "agent", "vendor": "no-vendor"}
        requested = {
            kind: other.get(kind, "noop" if kind in ("network", "storage") else "fake") for kind in interfaces.TYPES
        }
        arguments = " ".join(f"--{kind}-interface {name}" for kind, name in requested.items())
        created = self.cli.show(f"node create --driver fake-hardware --name chosen {arguments}")
        self.assertEqual(requested, {kind: created[f"{kind}_interface"] for kind in interfaces.TYPES})
        created = self.cli.show("node create --driver fake-hardware --power-interface fake")
        self.assertEqual(("fake", "fake"), (created["power_interface"], created["deploy_interface"]))
        created = self.cli.show("node create --driver example_classic")
        self.assertEqual({None}, {created[f"{kind}_interface"] for kind in interfaces.TYPES})
        self.check_refusals(
            {
                "node create --driver fake-hardware --power-interface ipmitool": ("ipmitool", "fake", "HTTP 400"),
                "node create --driver example_classic --power-interface fake": ("power_interface", "HTTP 400"),
                "node create --driver steam": ("steam", "HTTP 400"),
            }
        )

    def test_interfaces_are_changed_and_reset(self) -> None:
        self.cli("node create --driver fake-hardware --name changing")

        def has(*fields: str) -> tuple[str, ...]:
            shown = self.cli.show(f"node show changing --fields {' '.join(fields)}")
            return tuple(shown[field] for field in fields)

        self.cli("node set changing --deploy-interface direct --boot-interface ipxe --raid-interface agent")
        self.assertEqual(("direct", "ipxe", "agent"), has("deploy_interface", "boot_interface", "raid_interface"))
        self.cli("node set changing --reset-raid-interface")
        self.assertEqual(("direct", "fake"), has("deploy_interface", "raid_interface"))
        complaint = self.cli.refused("node set changing --driver ipmi")
        for part in ("power interface 'fake'", "ipmitool", "HTTP 400"):
            self.assertIn(part, complaint)
        self.cli("node set changing --driver ipmi --reset-interfaces --deploy-interface ramdisk")
        self.assertEqual(("ipmi", "ipmitool", "ramdisk"), has("driver", "power_interface", "deploy_interface"))
        listed = self.cli.show("node list --driver ipmi --fields name")
        self.assertEqual([{"name": "changing"}], listed)


class TestFlows(CliTest):
    """Cleaning, deploying and servicing with steps, held and let go, by a user with a password."""

    password = PASSWORD

    def check_held(self, node: str, flow: str) -> None:
        """Check that the running step is shown, and the plan with its place in it."""
        state, key = f"{flow} hold", f"{flow}_step"
        self.ingot.reach(node, state)
        shown = self.cli.show(f"node show {node} -c provision_state -c {key} -c driver_internal_info")
        step, info = shown[key], shown["driver_internal_info"]
        self.assertEqual((state, "hold", "request"), (shown["provision_state"], step["step"], step["origin"]))
        self.assertEqual(step, info[f"{key}s"][info[f"{key}_index"]])

    def test_it_speaks_the_newest_version_that_both_know_and_only_to_those_with_the_password(self) -> None:
        client = environments.run(programs() / "python", "-c", NEWEST).strip()
        server = self.ingot.get("/")["default_version"]["version"]
        spoken = min(client, server, key=lambda version: int(version.partition(".")[2]))
        outcome = self.cli.run("node list", options=("--debug",))
        self.assertIn(f"X-OpenStack-Ironic-API-Version: {spoken}", outcome.stderr)
        self.assertNotIn(PASSWORD, outcome.stdout)
        refused = self.cli.run("node list", options=("--os-password", "wrong"))
        self.assertEqual((1, True), (refused.returncode, "HTTP 401" in refused.stderr))

    def test_a_machine_is_cleaned_deployed_and_serviced_with_steps(self) -> None:
        self.enroll("worker")
        verdict = self.cli.show("node validate worker")
        self.assertEqual({"True"}, {str(one["Result"]) for one in verdict})

        self.cli("node clean worker --clean-steps", text(BIOS, HOLD, RESET))
        self.check_held("worker", "clean")
        self.cli("node unhold worker")
        self.ingot.reach("worker", "manageable")
        self.cli("node provide worker")
        self.ingot.reach("worker", "available")

        self.cli("node set worker --instance-info image_source=http://images.example.com/image")
        self.cli(
            "node deploy worker --config-drive", '{"user_data": "#!"}', "--deploy-steps", text(BIOS, HOLD, priority=90)
        )
        self.check_held("worker", "deploy")
        self.cli("node unhold worker")
        self.ingot.reach("worker", "active")

        self.cli("node service worker --service-steps", text(HOLD, BIOS))
        self.check_held("worker", "service")
        self.cli("node unhold worker")
        self.ingot.reach("worker", "active")
        self.cli("node rebuild worker --deploy-steps", text(RESET, priority=150))
        self.ingot.reach("worker", "active")
        self.cli("node undeploy worker")
        self.ingot.reach("worker", "available")
        self.check_history("worker")

    def check_history(self, node: str) -> None:
        events = self.events(node)
        for flow, step in (("manual_clean", BIOS), ("deploy", BIOS), ("service", BIOS), ("deploy", RESET)):
            ran = f"Step {step['interface']}.{step['step']} (request) of flow {flow} completed."
            self.assertIn(ran, events)
        entries = self.cli.show(f"node history list {node} --long")
        (entry,) = [one for one in entries if one["event"] == "Servicing completed."]
        shown = self.cli.show(f"node history get {node} {entry['uuid']}")
        self.assertEqual(("INFO", "conductor-0"), (shown["severity"], shown["conductor"]))

    def test_a_held_machine_is_given_up(self) -> None:
        self.enroll("held")
        self.cli("node clean held --clean-steps", text(HOLD))
        self.ingot.reach("held", "clean hold")
        self.cli("node abort held")
        failed = self.ingot.reach("held", "clean failed")
        self.assertIn("aborted in step power.hold", failed["last_error"])
        self.cli("node manage held --wait 30")
        self.ingot.reach("held", "manageable")

    def test_what_cannot_be_done_is_said(self) -> None:
        self.enroll("stubborn")
        self.check_refusals(
            {
                "node deploy stubborn": ("manageable", "HTTP 400"),
                "node unhold stubborn": ("unhold", "manageable", "HTTP 400"),
                "node service stubborn --service-steps []": ("service", "HTTP 400"),
                "node clean stubborn --clean-steps []": ("clean_steps", "HTTP 400"),
                "node clean stubborn": ("--clean-steps",),
                "node clean stubborn --runbook CUSTOM_NONE": ("CUSTOM_NONE", "HTTP 404"),
                "node manage missing": ("missing", "HTTP 404"),
            }
        )
        self.cli("node clean stubborn --clean-steps", text({"interface": "bios", "step": "melt"}))
        failed = self.ingot.reach("stubborn", "clean failed")
        for part in ("bios.melt", "bios.apply_configuration, bios.factory_reset"):
            self.assertIn(part, failed["last_error"])
        self.assertIn(failed["last_error"][:200], self.events("stubborn")[-1])


class TestRunbooks(CliTest):
    """Steps under a name."""

    def test_runbooks_are_kept_and_run(self) -> None:
        steps = text({**RESET, "order": 2}, {**BIOS, "order": 1})
        created = self.cli.show("runbook create --name tuning --description early --disable-ramdisk --steps", steps)
        self.assertEqual(
            ("tuning", "early", True), tuple(created[key] for key in ("name", "description", "disable_ramdisk"))
        )
        self.cli("runbook set tuning --description late --extra rack=7")
        self.cli("runbook trait add tuning CUSTOM_TUNED CUSTOM_OLD")
        self.cli("runbook trait remove tuning CUSTOM_OLD")
        for ident in ("tuning", created["uuid"]):
            shown = self.cli.show(f"runbook show {ident}")
            self.assertEqual(
                ("late", ["CUSTOM_TUNED"], {"rack": 7}), (shown["description"], shown["traits"], shown["extra"])
            )
        self.assertIn({"uuid": created["uuid"], "name": "tuning"}, self.cli.show("runbook list"))

        self.enroll("tuned")
        self.assertIn("CUSTOM_TUNED", self.cli.refused("node clean tuned --runbook tuning"))
        self.cli("node add trait tuned CUSTOM_TUNED")
        self.cli("node clean tuned --runbook tuning")
        self.ingot.reach("tuned", "manageable")
        ran = [event for event in self.events("tuned") if "(runbook tuning)" in event]
        self.assertEqual(["bios.apply_configuration", "bios.factory_reset"], [event.split()[1] for event in ran])
        self.cli("runbook unset tuning --description")
        self.assertIsNone(self.cli.show("runbook show tuning")["description"])
        self.cli("runbook delete tuning")
        self.assertIn("HTTP 404", self.cli.refused("runbook show tuning"))


class TestEmptyAnswers(CliTest):
    """Commands whose answer has no body; that any command complains fails each of these tests."""

    COMMANDS = (
        "node power on {}", "node maintenance set {} --reason fan", "node maintenance unset {}",
        "node boot device set {} disk --persistent", "node boot mode set {} uefi", "node console enable {}",
        "node vif attach {} a-network", "node vif detach {} a-network", "node remove trait {} --all",
        "node passthru call {} second_method --arg bar=kazoo", "node inspect {} --wait 60",
    )  # fmt: skip

    def test_of_what_is_done_with_a_node(self) -> None:
        self.enroll("quiet")
        for command in self.COMMANDS:
            self.cli(command.format("quiet"))
        shown = self.cli.show("node show quiet")
        self.assertEqual(
            ("power on", "uefi", True), tuple(shown[k] for k in ("power_state", "boot_mode", "console_enabled"))
        )


class TestWords(CliTest):
    """The words that the functional tests of python-ironicclient look for in refusals."""

    def test_of_names_and_uuids(self) -> None:
        steps = text(*EARLY).replace(" ", "")
        allocation = "allocation create --resource-class allocation-test"
        self.check_refusals(
            {
                "node create --driver fake-hardware --uuid !@#$^*&%^": ("Expected UUID for uuid",),
                "node create --driver wrongdriver": (
                    "No valid host was found. Reason: No conductor service registered",
                    "which supports driver wrongdriver",
                ),
                f"deploy template create CUSTOM_A --steps {steps} --uuid !@#$^*&%^": ("Expected UUID for uuid",),
                f"deploy template create not/a/name --steps {steps}": ("does not match",),
                f"deploy template create foo --steps {steps}": ("does not match",),
                "deploy template create CUSTOM_A --steps []": ("is too short",),
                f"{allocation} --uuid !@#$^*&%^": ("Expected UUID for uuid",),
                f"{allocation} --name not/a/name": ("invalid name",),
                f"allocation create --resource-class {'x' * 81}": ("is too long",),
                f"{allocation} --trait foo": ("does not match",),
                f"{allocation} --candidate-node banana?": ("Nodes cannot be found",),
            }
        )

    def test_of_what_is_not_there(self) -> None:
        self.cli("node create --driver fake-hardware --name bare")
        complaint = self.cli.refused("node unset bare --property prop")
        self.assertIn("Reason: can't remove a non-existent object", complaint)
