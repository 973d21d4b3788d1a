"""A real Cinder on SQLite: API, scheduler and a storage that notes which machines are let in, in one process."""

import functools
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import fixtures
import requests
from keystoneauth1 import noauth, service_token, session
from openstack import connection

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import client, cloud, environments, targets

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
import os, pathlib, uuid
import eventlet.wsgi
import sqlalchemy
from oslo_concurrency import processutils
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

class TargetShelf(Shelf):
    def do_setup(self, context):
        super().do_setup(context)
        self.files = pathlib.Path(directory, "volumes")
        self.files.mkdir(exist_ok=True)
        self._change("account", "new", "--user", USERNAME, "--password", PASSWORD)

    def _change(self, mode, op, *words):
        command = ["tgtadm", "--lld", "iscsi", "--mode", mode, "--op", op, *words]
        processutils.execute(*command, env_variables={**os.environ, "TGT_IPC_SOCKET": SOCKET, "PATH": SEARCHED})

    def _number(self, volume):
        return "--tid", str(int(volume.id[:7], 16) + 1)

    def create_volume(self, volume):
        with (self.files / volume.id).open("wb") as file:
            file.truncate(volume.size * 2**30)

    def delete_volume(self, volume):
        (self.files / volume.id).unlink(missing_ok=True)

    def initialize_connection(self, volume, connector):
        found, number = super().initialize_connection(volume, connector), self._number(volume)
        self._change("target", "new", *number, "--targetname", found["data"]["target_iqn"])
        self._change("logicalunit", "new", *number, "--lun", "1", "--backing-store", str(self.files / volume.id))
        self._change("account", "bind", *number, "--user", USERNAME)
        self._change("target", "bind", *number, "--initiator-name", connector["initiator"])
        return found

    def terminate_connection(self, volume, connector, **kwargs):
        super().terminate_connection(volume, connector, **kwargs)
        self._change("target", "delete", "--force", *self._number(volume))

CONF = cfg.CONF
CONF(["--config-file", directory + "/cinder.conf"], project="cinder", version="gate")
log.setup(CONF, "cinder")
engine = sqlalchemy.create_engine(CONF.database.connection)
models.BASE.metadata.create_all(engine)
add = "insert or ignore into volume_types (id, name, is_public, deleted, created_at) values (:id, :name, 1, 0, :at)"
kind = {"id": str(uuid.UUID(int=1)), "name": "__DEFAULT__", "at": "2026-01-01 00:00:00"}
with engine.begin() as connection:
    connection.execute(sqlalchemy.text(add), kind)
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
auth_strategy = {strategy}
api_paste_config = {etc}/api-paste.ini
resource_query_filters_file = {etc}/resource_filters.json
state_path = {directory}
enabled_backends = shelf
default_volume_type = __DEFAULT__
quota_volumes = -1
report_interval = 5
service_down_time = 86400
scheduler_driver_init_wait_time = 1
[shelf]
volume_driver = __main__.{driver}
volume_backend_name = shelf
[database]
connection = sqlite:///{directory}/cinder.sqlite
[oslo_concurrency]
lock_path = {directory}/locks
[coordination]
backend_url = file://{directory}/coordination
"""

_KEYSTONE = """
[keystone_authtoken]
www_authenticate_uri = {auth_url}
auth_type = password
service_token_roles = service
service_token_roles_required = true
{credentials}
"""


class Shelf(NamedTuple):
    """A storage that really exports volumes.

    :param address: by which machines reach it.
    """

    address: str
    target: targets.Target


class Cinder(fixtures.Fixture):
    """
    :param keystone: whom it asks; None: it believes everyone.
    :param shelf: what exports its volumes; None: its storage only notes what it is asked for.
    :ivar url: of the API, without a version.
    """

    def __init__(self, keystone: cloud.Keystone | None = None, shelf: Shelf | None = None) -> None:
        super().__init__()
        self._shelf = shelf
        self._keystone = keystone

    def _setUp(self) -> None:
        programs = environments.cached("cinder", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        (self.directory / "cinder.conf").write_text(self._configuration(programs.parent / "etc" / "cinder"))
        known = {"USERNAME": USERNAME, "PASSWORD": PASSWORD, "PORTAL": PORTAL}
        if self._shelf is not None:
            portal = f"{self._shelf.address}:{self._shelf.target.port}"
            known |= {"PORTAL": portal, "SOCKET": str(self._shelf.target.socket), "SEARCHED": targets.PATH}
        constants = "".join(f"{name} = {value!r}\n" for name, value in known.items())
        program = [str(programs / "python"), "-W", "ignore", "-c", constants + _SERVE, str(port), str(self.directory)]
        self.process = lab.Process(program, self.directory / "cinder.log")
        self.addCleanup(self.process.stop)
        self.start()
        if self._keystone is not None:
            self._keystone.grant("ingot", "service", "admin")  # beside service: volumes are of all projects

    def _configuration(self, etc: pathlib.Path) -> str:
        strategy = "noauth" if self._keystone is None else "keystone"
        driver = "Shelf" if self._shelf is None else "TargetShelf"
        own = _CONFIGURATION.format(directory=self.directory, etc=etc, strategy=strategy, driver=driver)
        if self._keystone is None:
            return own
        who = self._keystone.credentials("ingot")
        credentials = "\n".join(f"{name} = {value}" for name, value in who.items())
        return own + _KEYSTONE.format(auth_url=who["auth_url"], credentials=credentials)

    def start(self) -> None:
        self.process.start()
        self.eventually(self._is_served, "it is served")

    def _is_served(self) -> bool:
        try:
            return requests.get(self.url, timeout=client.PATIENCE_S).status_code == _CHOICES
        except requests.ConnectionError:
            return False

    def eventually(self, check: Callable[[], bool], what: str) -> None:
        lab.eventually(check, what, client.PATIENCE_S, self.last_words)

    def last_words(self) -> str:
        """Return the end of its log."""
        return self.process.log.read_text()[-10000:]

    def options(self, url: str = "") -> dict[str, dict[str, Any]]:
        """Return how Ingot uses it.

        :param url: where it is asked; by default, as the catalog says.
        """
        login: dict[str, Any] = {"auth_type": "none"}
        if self._keystone is not None:
            who = self._keystone.credentials("ingot")
            login = {**who, "auth_type": "password", "region_name": cloud.REGION}
        place = {"endpoint_override": url} if url else {}
        return {
            "DEFAULT": {"enabled_storage_interfaces": "noop,cinder"},
            "cinder": {**login, **place, "action_retry_interval": 0},
        }

    @functools.cached_property
    def _api(self) -> Any:
        """The API as a service has it that is an administrator, too: else Cinder asks Nova about attachments."""
        login = noauth.NoAuth()
        if self._keystone is not None:
            user = self._keystone.connect("ingot").session.auth
            login = service_token.ServiceTokenAuthWrapper(user_auth=user, service_auth=user)
        own = session.Session(auth=login, additional_headers={} if self._keystone else {"X-Auth-Token": "admin"})
        place = {"block_storage_endpoint_override": f"{self.url}/v3", "block_storage_api_version": "3"}
        return connection.Connection(session=own, **place).block_storage

    def create_volume(self, name: str = "") -> str:
        """Create a volume; return its id when it is available."""
        ident = str(self._api.create_volume(size=1, name=name).id)
        self.eventually(lambda: bool(self.volume(ident)["status"] == "available"), f"volume {ident} is available")
        return ident

    def file(self, ident: str) -> pathlib.Path:
        """Return the file of a volume that is really exported."""
        return self.directory / "volumes" / ident

    def delete_volume(self, ident: str) -> None:
        self._api.delete_volume(ident)
        self.eventually(lambda: all(volume.id != ident for volume in self._api.volumes()), f"volume {ident} is gone")

    def volume(self, ident: str) -> dict[str, Any]:
        found: dict[str, Any] = self._api.get_volume(ident).to_dict(original_names=True, computed=False)
        return found

    def list_attachments(self) -> list[dict[str, Any]]:
        """Return all attachments, with what they are for."""
        found = self._api.attachments(all_projects=True)
        return [one.to_dict(original_names=True, computed=False) for one in found]

    def delete_attachments(self) -> None:
        for one in self.list_attachments():
            self._api.delete_attachment(one["id"])

    def exports(self) -> dict[tuple[str, str], str]:
        """Return the connections that the storage has made: initiators by volume and host."""
        files = (self.directory / "exports").iterdir()
        return {tuple(file.name.split("+")): file.read_text() for file in files}  # type: ignore[misc]

    def count(self) -> tuple[int, int]:
        """Return how many attachments there are, and how many connections the storage has made."""
        return len(self.list_attachments()), len(self.exports())
