"""The site that suffers: three conductors, two APIs, a rack, and a database and a broker of its own."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import threading
from collections.abc import Mapping
from concurrent import futures
from typing import Any

import fixtures
import services
import sqlalchemy as sa
from servers import SERVERS

from ingot.rack import readback
from ingot.rack.process import RackControl
from tests import database, disk_images
from tests.functional import proxy
from tests.functional.deployment import lab
from tests.gate.faults import audit, engraver, wire

BROKER = "RabbitMQ"
DATABASES = {"mysql": "MariaDB", "postgresql": "PostgreSQL"}
CONDUCTORS = 3
APIS = 2
IMAGES = 2
_IMAGE_SIZE = 2 * 2**20
_MARK = 2**20 + 4096

STAMP = "stamp"
"""A step of the agents that must not be carried out twice."""

ENGRAVED = "CUSTOM_ENGRAVED"
"""The trait and deploy template of machines whose deployment has a step that must not be repeated."""

_DRIVER = {
    "METADATA": "Metadata-Version: 2.1\nName: ingot-engraver\nVersion: 1\n",
    "entry_points.txt": "[ingot.hardware.types]\nengraved = engraver:EngravedHardware\n"
    "[ingot.hardware.interfaces.vendor]\nengraver = engraver:Engraver\n",
}
_ENABLED = {"enabled_hardware_types": "ipmi,engraved", "enabled_vendor_interfaces": "no-vendor,engraver"}


class Site(fixtures.Fixture):
    """Ingot as a cluster, each part of which can be made to fail.

    :param backend: mysql or postgresql.
    :param machines: how many.
    :param options: of Ingot: {group: {name: value}}.
    :param stamp_s: seconds that the step :data:`STAMP` of each deployment takes.
    :ivar victims: by what they are, the names of those whom faults befall.
    :ivar dead: processes that are not to run now.
    :ivar revived: processes that ended and were started again, as often as they were.
    """

    def __init__(
        self, backend: str, machines: int, options: Mapping[str, Mapping[str, Any]], stamp_s: float = 0.5
    ) -> None:
        super().__init__()
        self.backend = backend
        self._machines = machines
        self._options = {**options, "DEFAULT": {**options.get("DEFAULT", {}), **_ENABLED}}
        step = {"step": STAMP, "priority": 70, "kinds": ["deploy"], "duration": stamp_s}
        # Machines small enough that two hundred are no load of their own.
        small = {"disks": 1, "disk_size": "16M"}
        self._rack = {**small, "boot_retry": 1.0, "heartbeat_max": 3.0, "agent_settle": 0.2, "steps": [step]}
        self._over = threading.Event()
        self.dead: set[str] = set()
        self.revived: list[str] = []

    def _setUp(self) -> None:
        # A server ends with the thread that started it: this one lives longer than all that needs servers.
        self._starter = futures.ThreadPoolExecutor(max_workers=1)
        self.addCleanup(self._starter.shutdown)
        database_name = DATABASES[self.backend]
        self._start_servers({BROKER, database_name})
        self._install_driver()
        self.database = self.useFixture(database.DatabaseFixture(self.backend, migrated=False))
        self.url = sa.make_url(self.database.url)
        self.lab = _Cluster(self, machines=self._machines, rack=self._rack, options=self._options)
        self.database_line = self.useFixture(proxy.Proxy(("127.0.0.1", self.servers[database_name].site.port)))
        broker = ("127.0.0.1", self.servers[BROKER].site.port)
        self.wires = {name: self.useFixture(wire.line_to(broker)) for name in self.lab.names}
        audit.make_accounts(self.url, [*self.lab.names, *self.lab.addresses, "dbsync"])
        self.useFixture(self.lab)
        self.addCleanup(self._over.set)  # before the laboratory stops its processes
        audit.begin(self.url)
        self.victims = {
            "conductors": list(self.lab.conductors),
            "apis": list(self.lab.apis),
            "brokers": [BROKER],
            "databases": [database_name],
            "machines": [machine["name"] for machine in self.lab.rack.machines],
        }
        self._make_images()
        step = {"interface": "vendor", "step": "engrave", "args": {}, "priority": 150}
        self.lab.user.post("/v1/deploy_templates", {"name": ENGRAVED, "steps": [step]})

    def _start_servers(self, names: set[str]) -> None:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        started = stack.enter_context(services.servers([one for one in SERVERS if one.name in names]))
        self.servers = {one.server.name: one for one in started}
        for name, url in services.variables_of(started).items():
            self.useFixture(fixtures.EnvironmentVariable(name, url))

    def _install_driver(self) -> None:
        """Install the suite's driver where the conductors find packages, with all that pip would leave."""
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        shutil.copy(str(engraver.__file__), place)
        about = place / "ingot_engraver-1.dist-info"
        about.mkdir()
        for name, text in _DRIVER.items():
            (about / name).write_text(text)
        self._plates = place / "plates"
        self._plates.touch()
        path = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.useFixture(fixtures.EnvironmentVariable("PYTHONPATH", os.pathsep.join(path)))
        self.useFixture(fixtures.EnvironmentVariable(engraver.PLATES, str(self._plates)))

    def start_server(self, name: str) -> None:
        """Start a server that was stopped, and wait until it answers."""
        self._starter.submit(self.servers[name].start).result()
        self.servers[name].wait_until_ready()

    def own_options(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Return a process's own addresses of database and bus.

        The database can tell processes apart by these names, and the wire of one process can be cut.
        """
        url = self.url.set(username=name, password=audit.PASSWORD, port=self.database_line.port)
        bus = self.servers[BROKER].url
        if name in self.wires:
            line = self.wires[name]
            bus = bus.replace(f"127.0.0.1:{self.servers[BROKER].site.port}/", f"{line.host}:{line.port}/")
        return {
            "DEFAULT": {"transport_url": bus},
            "database": {"connection": url.render_as_string(hide_password=False)},
        }

    def supervise(self) -> None:
        """Restart from now on what has ended, as a service manager does."""
        self.processes = {**self.lab.conductors, **self.lab.apis}

        def watch() -> None:
            while not self._over.wait(0.5):
                for name, process in self.processes.items():
                    if not process.running and name not in self.dead:
                        self.revived.append(name)
                        process.start()

        supervisor = threading.Thread(target=watch, daemon=True)
        supervisor.start()
        self.addCleanup(supervisor.join)

    # Machines

    def control(self) -> RackControl:
        """Return the rack's control for one request: its connection is not for several threads."""
        return RackControl(self.lab.rack.description["control_url"])

    def plates(self) -> list[tuple[str, str]]:
        """Return what was engraved: node and run, each time."""
        return [(node, run) for node, run in map(str.split, self._plates.read_text().splitlines())]

    # Images

    def _make_images(self) -> None:
        """Make several images with different contents, to detect a disk that still holds the last deployment's."""
        self._images = []
        for number in range(IMAGES):
            image = bytearray(disk_images.gpt_image(_IMAGE_SIZE))
            mark = b"image number %d " % number
            image[_MARK : _MARK + len(mark)] = mark
            path = self.lab.directory / "files" / f"image-{number}.raw"
            path.write_bytes(image)
            self._images.append(path)

    def image_info(self, number: int) -> dict[str, Any]:
        """Return the instance_info for the image of a deployment.

        :param number: of the deployment.
        """
        path = self._images[number % IMAGES]
        return {
            "image_source": f"{self.lab.files.url}/{path.name}",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": hashlib.sha256(path.read_bytes()).hexdigest(),
            "image_disk_format": "raw",
        }

    def runs_image(self, machine: str, number: int) -> bool:
        """Return whether a machine runs from a disk that holds the image of a deployment, byte by byte."""
        found = self.control().machine(machine)
        expected = readback.content_digest(self._images[number % IMAGES], _IMAGE_SIZE)
        return found["state"] == "os" and readback.content_digest(found["disks"][0]["path"], _IMAGE_SIZE) == expected


class _Cluster(lab.Lab):
    """A laboratory whose processes differ in how they reach database and bus."""

    def __init__(self, site: Site, **settings: Any) -> None:
        super().__init__(site.database.url, site.servers[BROKER].url, conductors=CONDUCTORS, apis=APIS, **settings)
        # The broker is not shared, and names that stay make schedules that can be played again.
        self.names = [f"conductor-{number}" for number in range(CONDUCTORS)]
        self._site = site

    def wait_until_served(self) -> None:
        self._site.supervise()
        super().wait_until_served()

    def own_options(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        return self._site.own_options(name)
