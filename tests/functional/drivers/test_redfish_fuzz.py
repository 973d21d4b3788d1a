"""Each answer of a BMC made wrong in each of its parts: always a clear error or a result that can be kept, in time."""

import json
import random
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, ClassVar, NamedTuple

import fixtures
import requests
import sqlalchemy as sa

from ingot.common import errors
from ingot.db import models
from ingot.drivers.redfish import connection
from tests import patience
from tests.functional.rack.base import RackTest
from tests.unit.drivers import fakes, redfish_bmc
from tests.unit.drivers.redfish_bmc import Fault

SEED, CASES = 14, 500
ELSEWHERE = "http://192.0.2.1/redfish/v1/Systems/1"

WRONG = (
    *("null", "[]", "{}", '""', "true", "0", "-1", "3.5", '"x"', "[null]", "[[]]", '[{"@odata.id": 7}]', '{"a": {}}'),
    *('{"@odata.id": 7}', json.dumps({"@odata.id": ELSEWHERE}), json.dumps([{"@odata.id": ELSEWHERE}])),
    *("NaN", "-Infinity", "1e999", "9" * 30, "9" * 5000, r'"\u0000"', r'"\ud800"', json.dumps("y" * 70_000)),
    *("[" * 100_000, "[" * 2000 + "]" * 2000),
)
"""What takes the place of a value, as a BMC may send it."""

_MARK = "the-place-of-the-wrong-value"

Json = dict[str, Any]
Call = Callable[[fakes.MemoryTask], Any]

RAID = {"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}]}
CALLS: dict[str, Call] = {
    "power": lambda task: task.driver.power.start_reading(task).result(patience.seconds(60)),
    "power on": lambda task: task.driver.power.start_power_change(task, "power on"),
    "boot device": lambda task: task.driver.management.get_boot_device(task),
    "set boot device": lambda task: task.driver.management.set_boot_device(task, "cdrom", persistent=True),
    "boot mode": lambda task: task.driver.management.read_boot_mode(task),
    "set boot mode": lambda task: task.driver.management.set_boot_mode(task, "bios"),
    "secure boot": lambda task: task.driver.management.set_secure_boot(task, True),
    "lights": lambda task: [
        task.driver.management.get_indicator_state(task, one)
        for one in task.driver.management.get_supported_indicators(task)[:1]
    ],
    "media": lambda task: task.driver.management.get_virtual_media(task),
    "attach": lambda task: task.driver.management.attach_virtual_media(task, "cdrom", "http://192.0.2.1/a.iso", None),
    "detach": lambda task: task.driver.management.detach_virtual_media(task, ["cdrom"]),
    "clock": lambda task: task.driver.management.verify_bmc_clock(task),
    "jobs": lambda task: task.driver.management.clear_job_queue(task),
    "bios": lambda task: task.driver.bios.cache_bios_settings(task),
    "set bios": lambda task: task.driver.bios.apply_configuration(
        task, settings=[{"name": "ProcTurboMode", "value": "Disabled"}, {"name": "BootRetryCount", "value": 5}]
    ),
    "firmware": lambda task: task.driver.firmware.cache_firmware_components(task),
    "inspect": lambda task: task.driver.inspect.inspect_hardware(task),
    "arrays": lambda task: task.driver.raid.apply_configuration(task, raid_config=RAID),
    "subscriptions": lambda task: task.driver.vendor.get_all_subscriptions(task),
}  # fmt: skip


class Case(NamedTuple):
    """A document that one call reads, with one value replaced."""

    call: str
    path: str
    place: str
    content: bytes


def list_places(document: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where the values of a document are."""
    yield place
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in parts:
        yield from list_places(value, (*place, name))


def replace(document: Any, place: tuple[str | int, ...], value: Any) -> Any:
    if not place:
        return value
    if isinstance(document, dict):
        return {**document, place[0]: replace(document[place[0]], place[1:], value)}
    return [replace(one, place[1:], value) if index == place[0] else one for index, one in enumerate(document)]


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


class FuzzTest(RackTest):
    settings: ClassVar[Json] = {"redfish_base_port": 0, "redfish_tls": False, "machines": 1, "disks": 4}

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.bmc = redfish_bmc.BMC()
        self.addCleanup(self.bmc.stop)
        self.addCleanup(connection.log_out)
        self.threads = futures.ThreadPoolExecutor(1)
        self.addCleanup(self.threads.shutdown)
        face = self.rack.machines[0]["redfish"]
        self.system = face["system"]
        self.copy_documents(face["address"])
        self.conf = fakes.configuration(
            enabled_hardware_types=["redfish"],
            redfish__read_timeout=5,
            redfish__connection_retry_interval=1,
            redfish__connection_attempts=1,
            redfish__enable_verify_bmc_clock=True,
            default_inspect_interface="redfish",
            default_raid_interface="redfish",
        )

    def copy_documents(self, address: str) -> None:
        """Have the hostile BMC show what the rack's shows."""
        waiting, pattern = ["/redfish/v1/"], "@odata.id"
        while waiting:
            path = waiting.pop()
            answer = requests.get(f"{address}{path}", auth=("admin", "password"), timeout=30)
            document = self.bmc.documents[path] = answer.json() if answer.ok else {}
            links = [value for place, value in self.walk(document) if place and place[-1] in (pattern, "Uri")]
            waiting += {link for link in links if link not in self.bmc.documents and link.startswith("/redfish/v1/")}

    @staticmethod
    def walk(document: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
        for place in list_places(document):
            value = document
            for name in place:
                value = value[name]
            yield place, value

    def task(self) -> fakes.MemoryTask:
        info = {
            "redfish_address": self.bmc.url,
            "redfish_system_id": self.system,
            "redfish_username": redfish_bmc.USER,
            "redfish_password": redfish_bmc.PASSWORD,
        }
        return fakes.MemoryTask(self.conf, fakes.node(driver="redfish", driver_info=info))

    def list_cases(self) -> Iterator[Case]:
        for name, call in CALLS.items():
            self.bmc.requests.clear()
            call(self.task())
            for path in sorted({path for method, path in self.bmc.requests if method == "GET"}):
                document = self.bmc.documents[path]
                for place in list_places(document):
                    text = json.dumps(replace(document, place, _MARK))
                    for wrong in WRONG:
                        changed = text.replace(json.dumps(_MARK), wrong).encode()
                        yield Case(name, path, f"{'.'.join(map(str, place))} = {wrong[:40]}", changed)

    def test_no_wrong_value_is_more_than_an_error(self) -> None:
        cases = list(self.list_cases())
        chosen = random.Random(SEED).sample(cases, CASES)  # noqa: S311
        problems = [self.find_problem(case) for case in chosen]
        self.assertEqual([], [problem for problem in problems if problem])

    def find_problem(self, case: Case) -> str | None:
        """Return what a call has made of a wrong answer, unless it is as it should be."""
        self.bmc.order("GET", case.path, *[Fault(content=case.content)] * 8)
        task, problem = self.task(), None
        with redfish_bmc.measured() as taken:
            ended = self.threads.submit(CALLS[case.call], task)
            exc = ended.exception(patience.seconds(60))
            if exc is None:
                problem = find_unkept(task, ended.result())
            elif isinstance(exc, errors.HardwareError):
                problem = None if self.bmc.host in exc.message else f"names no BMC: {exc.message}"
            else:  # what the conductor would log with a traceback, unless it is ours
                problem = find_wrong(exc.message) if isinstance(exc, errors.IngotError) else repr(exc)[:200]
        self.bmc.faults.clear()
        connection.log_out()
        if taken[0] > patience.seconds(20):
            problem = f"it took {taken[0]} s"
        return problem and f"{case.call}: {case.path}: {case.place}: {problem}"


def find_unkept(task: fakes.MemoryTask, answer: Any) -> str | None:
    """Return why a database would not take what was found; None: it would."""
    rows = [(models.BiosSetting, row) for row in task.bios] + [(models.FirmwareComponent, row) for row in task.firmware]
    rows += [(models.Node, {name: getattr(task.node, name) for name in ("boot_mode", "secure_boot")})]
    for model, row in rows:
        for name, value in row.items():
            kind = models.table(model).c[name].type
            most = kind.length if isinstance(kind, sa.String) else None
            if value is not None and not isinstance(value, kind.python_type):
                return f"{name} is {value!r:.40}"
            if isinstance(value, str) and most is not None and len(value) > most:
                return f"{name} has {len(value)} characters"
    kept = (answer, task.memory, *task.found, task.node.properties, task.node.driver_internal_info)
    return next(filter(None, map(find_wrong, [*kept, *(row for _, row in rows)])), None)


def find_wrong(found: Any) -> str | None:
    """Return what of a result is no JSON, or no text of a database."""
    text = json.dumps(found, ensure_ascii=False, default=str)
    try:
        json.loads(text.encode(), parse_constant=refuse_constant)
    except ValueError as exc:
        return f"{exc}"
    return "NUL" if "\\u0000" in text else None
