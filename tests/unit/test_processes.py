"""What each process loads and how many threads it has: both are paid for as long as it runs, used or not."""

import functools
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent import futures

import testtools

from ingot.common import workers
from ingot.conductor import dispatcher
from tests import conductor_case

MIGRATIONS = ("alembic", "mako", "pygments")
GREEN_THREADS = ("eventlet", "dns")
ORM = ("sqlalchemy.orm", "sqlalchemy.ext")
DIALECTS = ("sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite")
UNUSED_BY_MOST = ("keystoneauth1", "passlib", "pycdlib", "re2", "sqlite3")
HTTP_CLIENTS = ("requests", "urllib3")


class Imports(testtools.TestCase):
    def loaded(self, *command: str) -> set[str]:
        """Return the modules of a Python that has been given these arguments and a line to end with."""
        *options, code = command
        last = "\nimport sys\nprint('MODULES', *(name for name, module in sys.modules.items() if module))"
        done = subprocess.run([sys.executable, *options, "-c", code + last], capture_output=True, text=True, check=True)
        return set(done.stdout.rpartition("MODULES")[2].split())

    def check(self, module: str, *unneeded: str) -> None:
        found = self.loaded("-W", "ignore", f"import {module}")
        self.assertIn(module, found)
        self.assertEqual([], sorted(found.intersection(unneeded)))

    def test_an_api_loads_nothing_of_conductors(self) -> None:
        hardware = ("ingot.conductor", "ingot.drivers", "pycdlib", "pyghmi")
        self.check(
            "ingot.api.cmd", *MIGRATIONS, *GREEN_THREADS, *ORM, *DIALECTS, *UNUSED_BY_MOST, *HTTP_CLIENTS, *hardware
        )

    def test_a_conductor_loads_nothing_of_apis(self) -> None:
        web = ("ingot.api", "flask", "jinja2", "jsonschema", "uvicorn", "uvloop", "werkzeug")
        self.check("ingot.conductor.cmd.conductor", *MIGRATIONS, *GREEN_THREADS, *ORM, *DIALECTS, *UNUSED_BY_MOST, *web)

    def test_a_supervisor_loads_nothing_but_pythons_own(self) -> None:
        code = f"import runpy\nrunpy.run_path({workers.__file__!r}, run_name='supervisor')"
        roots = {name.partition(".")[0] for name in self.loaded("-I", "-S", code)}
        self.assertEqual(set(), roots - sys.stdlib_module_names - {"__main__"})


class Threads(testtools.TestCase):
    def test_work_on_nodes_has_as_many_as_it_needed_at_once(self) -> None:
        before = set(threading.enumerate())
        queues = dispatcher.NodeQueues(lambda _uuid, _why: None, 100, lambda _uuid: False)
        self.addCleanup(queues.stop, conductor_case.PATIENCE)
        for number in range(50):
            self.run_one(queues, f"node-{number}")
        self.assertLessEqual(len(set(threading.enumerate()) - before), 5)

    def test_no_thread_is_forgotten_that_works_while_others_end(self) -> None:
        before = set(threading.enumerate())
        queues = dispatcher.NodeQueues(lambda _uuid, _why: None, 100, lambda _uuid: False)
        self.addCleanup(queues.stop, conductor_case.PATIENCE)
        ends = threading.Barrier(41)
        stay = threading.Event()
        self.addCleanup(stay.set)
        lasting = [queues.submit(f"lasting-{number}", stay.wait) for number in range(8)]
        short = [
            queues.submit(f"short-{number}", functools.partial(ends.wait, conductor_case.PATIENCE))
            for number in range(40)
        ]
        ends.wait(conductor_case.PATIENCE)
        futures.wait(short, conductor_case.PATIENCE)
        queues.end_idle_threads()
        stay.set()
        futures.wait(lasting, conductor_case.PATIENCE)
        while any(queues.is_busy(f"lasting-{number}") for number in range(8)):
            time.sleep(0.01)
        queues.end_idle_threads()
        for thread in set(threading.enumerate()) - before:
            thread.join(conductor_case.PATIENCE)
        self.assertEqual(set(), set(threading.enumerate()) - before)
        self.run_one(queues, "next")

    def run_one(self, queues: dispatcher.NodeQueues, uuid: str) -> Sequence[str]:
        return queues.submit(uuid, lambda: [uuid]).result(conductor_case.PATIENCE)
