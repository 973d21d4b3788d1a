"""ingot top and ingot explain, typed against an API that runs."""

import contextlib
import datetime
import functools
import io
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any
from unittest import mock

import bcrypt
import fixtures
import sqlalchemy as sa
import testtools
from keystoneauth1 import fixture as tokens
from rich.console import Console

from ingot.common import clock, states
from ingot.db import models, nodes
from ingot.terminal import client, pages, screen
from ingot.terminal.access import Door
from ingot.terminal.cmd import main
from tests import database, http_handler, patience, server_case

PATIENCE = patience.seconds(60)
PLAN = [{"interface": "deploy", "step": step, "args": {}, "origin": "driver"} for step in ("deploy", "write_image")]
NOTHING = {"at": clock.iso(clock.now()), "stale_at": None, "triage": [], "work": [], "work_count": 0,
           "counts": {"total": 7, "by_state": {"active": 7}, "by_conductor": {}, "by_class": {}}}  # fmt: skip


class TerminalCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        for name in ("ENDPOINT", "USERNAME", "PASSWORD", "CLOUD", "AUTH_URL", "AUTH_TYPE", "SYSTEM_SCOPE"):
            self.useFixture(fixtures.EnvironmentVariable(f"OS_{name}"))

    def type(self, *given: str) -> tuple[int, str]:
        """Return the exit code and what was printed."""
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
            code = main.main(given)
        return code, printed.getvalue()


class RunningCase(TerminalCase, server_case.ServerCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.useFixture(fixtures.EnvironmentVariable("OS_ENDPOINT", f"{self.url}/v1/"))

    def make_failed(self, error: str = "disk on\nfire") -> None:
        database.make_node(
            self.db, name="broken", provision_state=states.DEPLOYFAIL, last_error=error,
            provision_updated_at=clock.after(-200),
        )  # fmt: skip

    def make_deploying(self) -> models.Node:
        node = database.make_node(
            self.db, name="works", provision_state=states.DEPLOYING, flow="deploy", run_id=str(uuid.uuid4()),
            due_at=clock.after(60), step_state="polling", step_started_at=clock.after(-30), step_attempt=2,
            driver_internal_info={"deploy_steps": PLAN, "deploy_step_index": 1},
        )  # fmt: skip
        began = clock.after(-5000)
        ran = [
            {"node_id": node.id, "run_id": str(uuid.uuid4()), "flow": "deploy", "step_index": 1, "attempt": 1,
             "interface": "deploy", "step": "write_image", "args": {}, "priority": 1, "origin": "driver",
             "state": "done", "started_at": began, "finished_at": began + datetime.timedelta(seconds=60),
             "conductor": "c"}
        ]  # fmt: skip
        with self.db.single() as connection:
            connection.execute(sa.insert(models.table(models.StepRun)), ran)
        return node


class Top(RunningCase):
    def test_prints_the_overview_once(self) -> None:
        self.make_failed()
        self.make_deploying()
        database.make_node(self.db, resource_class="big")
        code, printed = self.type("top", "--once")
        self.assertEqual(0, code)
        for part in (
            "3 nodes, 1 to look at, 1 with work under way",
            "Failed (1)\n  broken  deploy failed, for 3 min",
            "    Why:  disk on fire\n    Next: Fix the cause and deploy again.",
            "Work under way (1)\n  works  deploy: step 2 of 2, deploy.write_image for 3",
            "(usually 1 min)",
            "left by its own past",
            "By state: available 1, deploy failed 1, deploying 1",
            "By class: none 2, big 1",
        ):
            self.assertIn(part, printed)
        self.assertNotIn("\x1b", printed)

    def test_that_is_no_terminal_prints_once_too(self) -> None:
        self.assertIn("0 nodes", self.type("top")[1])

    def test_as_json(self) -> None:
        code, printed = self.type("top", "--json")
        self.assertEqual((0, 0), (code, json.loads(printed)["counts"]["total"]))


class Explain(RunningCase):
    def test_says_what_the_overview_does_and_what_steps_took(self) -> None:
        node = self.make_deploying()
        code, printed = self.type("explain", "works")
        self.assertEqual(0, code)
        for part in (
            f"Node works ({node.uuid})",
            "Step:        deploy.write_image of flow deploy",
            "Waits for:   Hardware that step deploy.write_image has set to work",
            "If it lasts: Look at",
            "  polling     deploy.write_image  3",
            "(usually 1 min)  attempt 2",
        ):
            self.assertIn(part, printed)

    def test_a_failure_has_its_reason_and_the_next_thing_to_do(self) -> None:
        self.make_failed()
        printed = self.type("explain", "broken")[1]
        self.assertIn("Failed\n  Why:  disk on fire\n  Next: Fix the cause and deploy again.", printed)

    def test_nothing_of_it_is_obeyed_by_a_terminal(self) -> None:
        self.make_failed("\x1b]0;owned\x07disk\x9b2J\non fire")
        for words in (("explain", "broken"), ("top", "--once")):
            printed = self.type(*words)[1]
            self.assertNotRegex(printed, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("owned\ufffddisk\ufffd2J on fire", printed)

    def test_moments_are_by_the_clock_of_the_api(self) -> None:
        self.make_failed()
        late = clock.after(-3600)
        with mock.patch("ingot.terminal.client.clock.now", lambda: late):  # this computer's clock is slow
            printed = self.type("top", "--once")[1]
        self.assertIn("deploy failed, for 3 min", printed)

    def test_of_a_node_that_is_none(self) -> None:
        code, printed = self.type("explain", "a b/c")
        self.assertEqual(1, code)
        self.assertIn("a%20b%2Fc/explanation: 404", printed)


class Credentials(TerminalCase, server_case.ServerCase):
    def configure(self) -> None:
        super().configure()
        users = self.directory / "users"
        users.write_text(f"ada:{bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()}\n")
        self.conf.set_override("auth_strategy", "http_basic")
        self.conf.set_override("http_basic_auth_user_file", str(users))

    def test_of_http_basic(self) -> None:
        self.serve()
        url = f"--os-endpoint={self.url}"
        for more in ((), ("--os-username=ada", "--os-password=wrong")):
            code, printed = self.type("top", "--once", url, *more)
            self.assertEqual(1, code)
            self.assertIn("set OS_USERNAME and OS_PASSWORD", printed)
        self.useFixture(fixtures.EnvironmentVariable("OS_USERNAME", "ada"))
        self.useFixture(fixtures.EnvironmentVariable("OS_PASSWORD", "secret"))
        self.assertEqual(0, self.type("top", "--once", url)[0])


class Keystone(http_handler.FunctionServer):
    """Keystone and the API at one address; the API takes the second token only."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self._handler.do_POST = self._handler.do_GET  # type: ignore[attr-defined]
        self.given = 0

    @property
    def root(self) -> str:
        return str(self.url).removesuffix("/file")

    def _answer(self, request: http_handler.Handler) -> None:
        if request.command == "POST":
            request.body()
            self.given += 1
            token = tokens.V3Token()
            token.add_service("baremetal").add_endpoint("public", f"{self.root}/v1")
            request.answer(201, token, **{"X-Subject-Token": f"token-{self.given}"})
        elif request.path.startswith("/ingot/"):
            known = request.headers["X-Auth-Token"] == "token-2"
            request.answer(200 if known else 401, NOTHING if known else {})
        else:
            request.answer(200, {"version": tokens.V3Discovery(f"{self.root}/v3")})


class WithKeystone(TerminalCase):
    def test_a_token_that_is_refused_is_renewed(self) -> None:
        keystone = self.useFixture(Keystone())
        given = {"auth-url": f"{keystone.root}/v3", "username": "u", "password": "p", "user-domain-name": "d"}
        options = [f"--os-{name}={value}" for name, value in given.items()]
        code, printed = self.type("top", "--once", *options, "--os-system-scope=all")
        self.assertEqual((0, 2), (code, keystone.given), printed)
        self.assertIn("active 7", printed)

    def test_that_does_not_answer(self) -> None:
        given = ("top", "--once", "--os-auth-url=http://127.0.0.1:9/v3", "--os-username=u")
        self.assertEqual((1, "ingot top: Keystone asks for a password: set OS_PASSWORD.\n"), self.type(*given))
        code, printed = self.type(*given, "--os-password=p")
        self.assertEqual(1, code)
        self.assertIn("Keystone cannot be used", printed)

    def test_a_cloud_needs_openstacksdk(self) -> None:
        with mock.patch.dict(sys.modules, {"openstack.config": None}):
            code, printed = self.type("top", "--once", "--os-cloud=mine")
        self.assertEqual(1, code)
        self.assertIn("pip install openstacksdk", printed)

    def test_a_cloud_that_is_none(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("OS_CLIENT_CONFIG_FILE", "/nonexistent"))
        code, printed = self.type("top", "--once", "--os-cloud=mine")
        self.assertEqual(1, code)
        self.assertIn("Cloud mine cannot be used", printed)


class Mistakes(TerminalCase):
    def test_where_nothing_answers(self) -> None:
        code, printed = self.type("top", "--once", "--os-endpoint=http://127.0.0.1:9")
        self.assertEqual(1, code)
        self.assertIn("ingot top: http://127.0.0.1:9 does not answer: ", printed)
        self.assertIn("Connection refused. Set OS_ENDPOINT.", printed)

    def test_where_something_else_answers(self) -> None:
        other = self.useFixture(http_handler.FunctionServer(lambda request: request.answer(200, b"<html>")))
        code, printed = self.type("top", "--once", f"--os-endpoint={other.url}")
        self.assertEqual(1, code)
        self.assertIn("is no Ingot", printed)


class Live(RunningCase):
    def open(self) -> Iterator[str]:
        """Yield what the screen shows, once a turn."""
        known = client.Client(Door(self.url))

        def read() -> screen.Page:
            found = known.get("/ingot/v1/overview")
            show = functools.partial(pages.list_overview, found, self.url, bars=True)
            return screen.Page(lambda: show(now=known.now()), pages.find_stale_at(found))

        shown = io.StringIO()
        console = Console(file=shown, width=160, height=50)
        kept = screen.Screen(known, read, console)
        while True:
            shown.truncate(0)
            kept.run(turns=1)
            yield shown.getvalue()

    def wait_for(self, shown: Iterator[str], part: str) -> None:
        until = clock.after(PATIENCE)
        while part not in (text := next(shown)):
            self.assertLess(clock.now(), until, text)

    def test_follows_events_and_says_when_they_stop(self) -> None:
        shown = self.open()
        self.wait_for(shown, "Live.")
        node = database.make_node(self.db, name="late")
        nodes.set_always(self.db, node.uuid, {"provision_state": states.DEPLOYFAIL, "last_error": "disk on fire"})
        self.wait_for(shown, "Why:  disk on fire")

    def test_a_lost_connection_is_seen_and_comes_back(self) -> None:
        shown = self.open()
        self.wait_for(shown, "Live.")
        port = self.port
        self.web.stop()
        self.wait_for(shown, "CONNECTION LOST")
        self.port = port
        self.serve()
        self.wait_for(shown, "Live.")

    def serve(self, **options: Any) -> Any:
        self.web = super().serve(**options)
        return self.web

    def test_who_may_not_follow_events_sees_that(self) -> None:
        def answer(request: http_handler.Handler) -> None:
            request.answer(403 if "events" in request.path else 200, NOTHING)

        known = client.Client(Door(self.useFixture(http_handler.FunctionServer(answer)).url))
        shown = io.StringIO()
        kept = screen.Screen(known, lambda: screen.Page(list), Console(file=shown, width=160))
        until = clock.after(PATIENCE)
        while "You may not follow events" not in shown.getvalue():
            kept.run(turns=1)
            self.assertLess(clock.now(), until)


class Command(testtools.TestCase):
    """The command ingot, which is a client or the server."""

    def run_python(self, *arguments: str) -> str:
        code = (
            "import sys\nfrom ingot.conductor.cmd import command\n"
            f"sys.argv = ['ingot', *{arguments!r}]\n"
            "try:\n command.main()\nexcept SystemExit:\n pass\nprint('MODULES', *sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=PATIENCE
        )
        return done.stdout

    def test_a_client_loads_nothing_of_servers(self) -> None:
        for name in main.COMMANDS:
            printed, _, modules = self.run_python(name, "--help").partition("MODULES")
            self.assertIn(f"ingot {name}", printed)
            unneeded = {"flask", "sqlalchemy", "oslo_config", "oslo_log", "rich", "ingot.api", "ingot.db", "openstack"}
            self.assertEqual(set(), unneeded & set(modules.split()))
            self.assertNotIn("ingot.conductor.cmd.all_in_one", modules)

    def test_its_help_names_the_clients(self) -> None:
        printed, _, modules = self.run_python("--help").partition("MODULES")
        for name in main.COMMANDS:
            self.assertIn(f"ingot {name}", " ".join(printed.split()))
        self.assertNotIn("ingot.terminal", modules.split())


class Pages(testtools.TestCase):
    def test_of_a_large_fleet_fit_a_screen(self) -> None:
        need = {"name": None, "uuid": "u", "provision_state": "clean failed", "since": None, "reason": None,
                "step": None, "by": "ada", "next": {"text": "Look.", "action": None}}  # fmt: skip
        group = {"cause": "failed", "title": "Failed", "count": 400, "nodes": [need] * 50}
        overview = {**NOTHING, "triage": [group]}
        for bars, more in ((True, 392), (False, 350)):
            lines = [line.text for line in pages.list_overview(overview, "http://x", clock.now(), bars)]
            self.assertIn(f"  and {more} more", lines)
            self.assertIn("  u  clean failed, by ada", lines)

    def test_bars_move_without_a_request(self) -> None:
        one = {"name": "n", "flow": "deploy", "step": "deploy.x", "index": 0, "steps": 1, "waits_for": "x",
               "started_at": None, "expected_seconds": None, "progress": 0.1, "basis": "class",
               "run_started_at": clock.iso(clock.after(-50)), "eta": clock.iso(clock.after(50))}  # fmt: skip
        overview = {**NOTHING, "work": [one]}
        text = "\n".join(line.text for line in pages.list_overview(overview, "http://x", clock.now(), bars=True))
        self.assertRegex(text, r"█{9,12}░{8,11}  (49|5\d)%, about \d+ s left by machines with its driver")
