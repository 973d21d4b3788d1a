"""What Ingot expects of any power interface, on a plug; and what the plug has beyond that."""

import functools
import http.server
import threading
from typing import Any, ClassVar

import fixtures

from ingot.common import errors, states
from ingot.driver_kit import memory_task
from ingot.driver_kit.bench import Bench
from ingot.driver_kit.contracts import power, suites
from ingot.driver_kit.http_handler import Handler

TOKEN = "open sesame"  # noqa: S105  of a plug that there is not
OPTIONS: dict[str, Any] = {"enabled_power_interfaces": ["example-plug"], "enabled_management_interfaces": ["noop"]}


class Plug(fixtures.Fixture):
    """A plug over HTTP.

    :ivar document: what it says, and what others write into it.
    :ivar speaks: whether it answers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.document: dict[str, Any] = {"on": False, "watts": 0.0, "display": ""}
        self.speaks = threading.Event()
        self.speaks.set()

    def _setUp(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, self))
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}/plug"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(self.speaks.set)


class _Handler(Handler):
    def __init__(self, plug: Plug, *arguments: Any) -> None:
        self._plug = plug
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._serve({})

    def do_PUT(self) -> None:
        self._serve(self.body())

    def _serve(self, values: dict[str, Any]) -> None:
        if not self._plug.speaks.is_set():
            self._plug.speaks.wait()
            self.close_connection = True
            return
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if allowed:
            self._plug.document.update(values)
        self.answer(200 if allowed else 401, self._plug.document if allowed else {})


class PlugBench(Bench):
    """A machine behind a plug: the contracts ask it for its task, and have it do what hardware does."""

    driver = "example-hardware"
    address = "plug_url"
    password = "plug_token"  # noqa: S105  the name of the key
    options: ClassVar[dict[str, Any]] = OPTIONS

    def connect(self) -> dict[str, Any]:
        self.plug = self.useFixture(Plug())
        return {"plug_url": self.plug.url, "plug_token": TOKEN}

    def seen_power(self) -> str | None:
        return states.POWER_ON if self.plug.document["on"] else states.POWER_OFF

    def limit_time(self, seconds: int) -> None:
        self.task.conf.set_override("timeout", seconds, "example")

    def silence(self) -> None:
        self.plug.speaks.clear()

    def speak(self) -> None:
        self.plug.speaks.set()

    close = silence


LACKS = (
    suites.Lack("*", "*", "test_each_target_*", "A plug has no soft power off.", "'soft rebooting' not in"),
    suites.Lack("*", "*", "test_a_soft_power_off_*", "A plug cuts the power; nothing can ignore it."),
    suites.Lack("*", "*", "test_a_machine_that_does_not_obey_*", "The plug of these tests always obeys."),
    suites.Lack("*", "*", "test_a_change_bears_*", "The plug of these tests has no passing troubles."),
)

globals().update(suites.build(__name__, (PlugBench,), LACKS, (power.PowerContract,)))


class ShowNameTest(memory_task.DriverTestCase):
    """The step of the example, on a task without a database."""

    options: ClassVar[dict[str, Any]] = {**OPTIONS, "enabled_hardware_types": ["example-hardware"]}

    def setUp(self) -> None:
        super().setUp()
        self.plug = self.useFixture(Plug())
        access = {"plug_url": self.plug.url, "plug_token": TOKEN}
        self.made = self.task(driver="example-hardware", driver_info=access, name="rack1-u7")

    def show(self, **args: object) -> None:
        step = {"interface": "power", "step": "show_name", "args": args}
        self.made.driver.power.execute_deploy_step(self.made, step)

    def test_the_display_shows_the_name_or_a_text(self) -> None:
        self.show()
        self.assertEqual("rack1-u7", self.plug.document["display"])
        self.show(text="do not touch")
        self.assertEqual("do not touch", self.plug.document["display"])

    def test_a_text_that_the_display_cannot_show_is_refused(self) -> None:
        for text in (7, "x" * 41):
            refused = self.assertRaises(errors.Invalid, self.show, text=text)
            self.assertIn("text", refused.message)
        self.assertEqual("", self.plug.document["display"])
