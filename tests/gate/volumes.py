"""A real Cinder on SQLite: API, scheduler and a storage that notes which machines are let in, in one process."""

import pathlib
import time
from collections.abc import Callable
from typing import Any

import fixtures
import requests

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import client, environments

REQUIREMENTS = ("cinder>=27.0",)

USERNAME, PASSWORD = "volume", "of-the-gate"
"""CHAP credentials of all volumes."""

_CHOICES = 300
"""Status of the list of versions."""

PORTAL = "192.0.2.5:3260"

# Its three services share a bus that is in the process, with what Cinder itself runs on. Migrations are for the
# databases of servers; the models make the same tables.
_SERVE = """
import sys
import eventlet
eventlet.monkey_patch()
import pathlib, uuid
import eventlet.wsgi
import sqlalchemy
from oslo_config import cfg
from oslo_log import log
from oslo_service import wsgi
port, directory, sys.argv = int(sys.argv[1]), sys.argv[2], ["cinder"]
from cinder import objects
objects.register_all()
from cinder.common import config
from cinder import coordination, rpc, service
from cinder.db import models
from cinder.volume import driver

class Shelf(driver.VolumeDriver):
    VERSION = "1"

    def do_setup(self, context):
        self.exports = pathlib.Path(directory, "exports")
        self.exports.mkdir(exist_ok=True)

    def _do_nothing(self, *args, **kwargs):
        pass

    check_for_setup_error = create_volume = delete_volume = _do_nothing
    ensure_export = create_export = remove_export = _do_nothing

    def _find(self, volume, connector):
        return self.exports / (volume.id + "+" + connector["host"])

    def initialize_connection(self, volume, connector):
        if volume.display_name == "broken":
            raise RuntimeError("the shelf is broken")
        self._find(volume, connector).write_text(connector.get("initiator", ""))
        where = {"target_iqn": "iqn.2010-10.org.openstack:volume-" + volume.id, "target_portal": PORTAL,
                 "target_lun": 1, "target_discovered": False, "volume_id": volume.id}
        chap = {"auth_method": "CHAP", "auth_username": USERNAME, "auth_password": PASSWORD}
        return {"driver_volume_type": "iscsi", "data": {**where, **chap}}

    def terminate_connection(self, volume, connector, **kwargs):
        self._find(volume, connector).unlink(missing_ok=True)

    def get_volume_stats(self, refresh=False):
        size = {"total_capacity_gb": 1000, "free_capacity_gb": 1000, "reserved_percentage": 0}
        return {"volume_backend_name": "shelf", "vendor_name": "gate", "driver_version": "1",
                "storage_protocol": "iSCSI", **size}

CONF = cfg.CONF
CONF(["--config-file", directory + "/cinder.conf"], project="cinder", version="gate")
log.setup(CONF, "cinder")
engine = sqlalchemy.create_engine(CONF.database.connection)
models.BASE.metadata.create_all(engine)
add = "insert into volume_types (id, name, is_public, deleted, created_at) values (:id, '__DEFAULT__', 1, 0, :at)"
with engine.begin() as connection:
    connection.execute(sqlalchemy.text(add), {"id": str(uuid.uuid4()), "at": "2026-01-01 00:00:00"})
rpc.init(CONF)
coordination.COORDINATOR.start()
about = {"binary": "cinder-volume", "service_name": "shelf", "coordination": False, "cluster": None}
for one in (service.Service.create(host="gate@shelf", **about), service.Service.create(binary="cinder-scheduler")):
    one.start()
application = wsgi.Loader(CONF).load_app("osapi_volume")
eventlet.wsgi.server(eventlet.listen(("127.0.0.1", port)), application)
"""

_CONFIGURATION = """
[DEFAULT]
transport_url = fake:/
auth_strategy = noauth
api_paste_config = {etc}/api-paste.ini
resource_query_filters_file = {etc}/resource_filters.json
state_path = {directory}
enabled_backends = shelf
default_volume_type = __DEFAULT__
report_interval = 5
service_down_time = 86400
scheduler_driver_init_wait_time = 1
[shelf]
volume_driver = __main__.Shelf
volume_backend_name = shelf
[database]
connection = sqlite:///{directory}/cinder.sqlite
[oslo_concurrency]
lock_path = {directory}/locks
[coordination]
backend_url = file://{directory}/coordination
"""


class Cinder(fixtures.Fixture):
    """
    :ivar url: of the API, without a version.
    """

    def _setUp(self) -> None:
        programs = environments.cached("cinder", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        configuration = _CONFIGURATION.format(directory=self.directory, etc=programs.parent / "etc" / "cinder")
        (self.directory / "cinder.conf").write_text(configuration)
        constants = f"PORTAL, USERNAME, PASSWORD = {(PORTAL, USERNAME, PASSWORD)!r}\n"
        program = [str(programs / "python"), "-W", "ignore", "-c", constants + _SERVE, str(port), str(self.directory)]
        self.process = lab.Process(program, self.directory / "cinder.log")
        self.addCleanup(self.process.stop)
        self.process.start()
        self.eventually(self._is_served, "it is served")

    def _is_served(self) -> bool:
        try:
            return requests.get(self.url, timeout=client.PATIENCE_S).status_code == _CHOICES
        except requests.ConnectionError:
            return False

    def eventually(self, check: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + client.PATIENCE_S
        while not check():
            if time.monotonic() > until:
                raise AssertionError(f"not true that {what}:\n{self.process.log.read_text()[-10000:]}")
            time.sleep(0.2)

    def options(self, url: str) -> dict[str, dict[str, Any]]:
        """Return how Ingot uses it.

        :param url: where it is asked.
        """
        return {
            "DEFAULT": {"enabled_storage_interfaces": "noop,cinder"},
            "cinder": {"auth_type": "none", "endpoint_override": url, "action_retry_interval": 0},
        }

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to an administrator's request, which must succeed."""
        headers = {"X-Auth-Token": "admin:gate", "OpenStack-API-Version": "volume 3.54"}
        answer = requests.request(
            method, f"{self.url}/v3/{path}", json=body, headers=headers, timeout=client.PATIENCE_S
        )
        if not answer.ok:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def create_volume(self, name: str = "") -> str:
        """Create a volume; return its id when it is available."""
        ident = str(self.ask("POST", "volumes", {"volume": {"size": 1, "name": name}})["volume"]["id"])
        self.eventually(lambda: bool(self.volume(ident)["status"] == "available"), f"volume {ident} is available")
        return ident

    def delete_volume(self, ident: str) -> None:
        self.ask("DELETE", f"volumes/{ident}")
        self.eventually(lambda: all(one["id"] != ident for one in self.ask("GET", "volumes")["volumes"]), "it is gone")

    def volume(self, ident: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"volumes/{ident}")["volume"]
        return found

    def list_attachments(self) -> list[str]:
        """Return the ids of all attachments."""
        return [one["id"] for one in self.ask("GET", "attachments?all_tenants=1")["attachments"]]

    def count(self) -> tuple[int, int]:
        """Return how many attachments there are, and how many connections the storage has made."""
        return len(self.list_attachments()), len(list((self.directory / "exports").iterdir()))
