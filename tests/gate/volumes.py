"""A real Cinder on SQLite: API, scheduler and a storage that notes which machines are let in, in one process."""

import pathlib
import time
from typing import Any

import fixtures
import requests

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import client, cloud, environments

REQUIREMENTS = ("cinder>=27.0",)

USERNAME, PASSWORD = "volume", "of-the-gate"
"""CHAP credentials of all volumes."""

PORTAL = "192.0.2.5:3260"

# Its three services talk by a bus that is in the process, with what Cinder itself runs on. Migrations are for the
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
        if volume.name_id and volume.display_name == "broken":
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
auth_strategy = keystone
api_paste_config = {etc}/api-paste.ini
resource_query_filters_file = {etc}/resource_filters.json
state_path = {directory}
enabled_backends = shelf
default_volume_type = __DEFAULT__
report_interval = 1
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
[keystone_authtoken]
www_authenticate_uri = {auth_url}
auth_type = password
service_token_roles = service
service_token_roles_required = true
{credentials}
"""


class Cinder(fixtures.Fixture):
    """
    :param keystone: whom it asks, and in whose catalog it is.
    :ivar url: of the API, without a version.
    :ivar admin: Cinder, for its administrator.
    """

    def __init__(self, keystone: cloud.Keystone) -> None:
        super().__init__()
        self._keystone = keystone

    def _setUp(self) -> None:
        programs = environments.cached("cinder", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        who = self._keystone.credentials("ingot")
        (self.directory / "cinder.conf").write_text(
            _CONFIGURATION.format(
                directory=self.directory,
                etc=programs.parent / "etc" / "cinder",
                auth_url=who["auth_url"],
                credentials="\n".join(f"{name} = {value}" for name, value in who.items()),
            )
        )
        constants = f"PORTAL, USERNAME, PASSWORD = {(PORTAL, USERNAME, PASSWORD)!r}\n"
        program = [str(programs / "python"), "-W", "ignore", "-c", constants + _SERVE, str(port), str(self.directory)]
        self.process = lab.Process(program, self.directory / "cinder.log")
        self.addCleanup(self.process.stop)
        self.process.start()
        self._wait()
        self._keystone.publish(f"{self.url}/v3", "block-storage", "cinder")
        self._keystone.grant("ingot", "service", "admin")  # beside service: volumes are of all projects
        self._users = {name: self._keystone.connect(name).block_storage for name in ("owner-member", "lessee-member")}
        self.admin = self._keystone.connect(cloud.ADMINISTRATOR, "admin").block_storage

    def _wait(self) -> None:
        until = time.monotonic() + client.PATIENCE_S
        while True:
            try:
                requests.get(self.url, timeout=client.PATIENCE_S)
            except requests.RequestException as exc:
                if time.monotonic() > until:
                    raise AssertionError(f"no Cinder:\n{self.process.log.read_text()[-5000:]}") from exc
                time.sleep(0.1)
            else:
                return

    def options(self, url: str = "") -> dict[str, dict[str, Any]]:
        """Return how Ingot uses it.

        :param url: where it is asked; by default, as the catalog says.
        """
        login = {**self._keystone.credentials("ingot"), "auth_type": "password", "region_name": cloud.REGION}
        place = {"endpoint_override": f"{url}/v3"} if url else {}
        return {
            "DEFAULT": {"enabled_storage_interfaces": "noop,cinder"},
            "cinder": {**login, **place, "action_retry_interval": 0},
        }

    def create_volume(self, user: str = "owner-member", name: str = "") -> str:
        """Create a volume of a user's; return its id when it is available."""
        ident = str(self._users[user].create_volume(size=1, name=name).id)
        until = time.monotonic() + client.PATIENCE_S
        while (status := self.volume(ident)["status"]) != "available":
            if status == "error" or time.monotonic() > until:
                raise AssertionError(f"volume {ident}: {status}\n{self.process.log.read_text()[-20000:]}")
            time.sleep(0.2)
        return ident

    def delete_volume(self, ident: str) -> None:
        volume = self.admin.get_volume(ident)
        self.admin.delete_volume(volume)
        self.admin.wait_for_delete(volume, interval=0.2, wait=client.PATIENCE_S)

    def volume(self, ident: str) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get_volume(ident).to_dict(original_names=True, computed=False)
        return found

    def count(self) -> tuple[int, int]:
        """Return how many attachments there are, and how many machines the storage lets in."""
        exports = self.directory / "exports"
        return len(list(self.admin.attachments(all_projects=True))), len(list(exports.iterdir()))
