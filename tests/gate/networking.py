"""A real Neutron on SQLite, with switches of networking-generic-switch; and a gateway before it that can fail."""

import http.server
import pathlib
import threading
import time
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import fixtures
import requests

from ingot.rack import ports
from tests import http_handler
from tests.functional.deployment import lab
from tests.gate import client, cloud, environments

REQUIREMENTS = ("neutron>=28.0", "networking-generic-switch>=10.0")

SWITCH, SWITCH_MAC = "fake", "0a:00:00:00:00:01"
"""A switch that is always there, and takes everything."""
PHYSICAL_NETWORK = "rack"
NETWORKS = ("cleaning", "provisioning", "rescuing", "servicing", "inspection", "tenant")
"""Networks that there are, by name."""

VLANS = {name: 100 + number for number, name in enumerate(NETWORKS)}
"""On which they are."""

# Neutron's own migrations are for the databases of servers; its models make the same tables.
_CREATE = """
import sys
import sqlalchemy
from neutron.db.migration.models import head
head.get_metadata().create_all(sqlalchemy.create_engine(sys.argv[1]))
"""

# One request after the other: SQLite has one writer.
_SERVE = """
import sys
from wsgiref import simple_server
port, sys.argv = int(sys.argv[1]), ["neutron-api"]
from neutron.wsgi.api import application
class Server(simple_server.WSGIServer):
    request_queue_size = 128
simple_server.make_server("127.0.0.1", port, application, server_class=Server).serve_forever()
"""

_CONFIGURATION = """
[DEFAULT]
core_plugin = ml2
service_plugins = trunk
transport_url = fake:/
api_paste_config = {paste}
state_path = {directory}
auth_strategy = keystone
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
dhcp_agent_notification = false
[database]
connection = {database}
[oslo_concurrency]
lock_path = {directory}/locks
[ml2]
type_drivers = vlan
tenant_network_types = vlan
mechanism_drivers = genericswitch
extension_drivers = port_security
[ml2_type_vlan]
network_vlan_ranges = {physical_network}:100:199
[genericswitch:{switch}]
device_type = netmiko_fake
ip = 127.0.0.1
username = gate
password = gate
ngs_mac_address = {switch_mac}
{switches}
[quotas]
quota_network = -1
quota_subnet = -1
quota_port = -1
[keystone_authtoken]
www_authenticate_uri = {auth_url}
auth_type = password
# What a test asks itself is answered while Keystone is away.
token_cache_time = 3600
{credentials}
"""


class Neutron(fixtures.Fixture):
    """
    :param keystone: whom it asks, and in whose catalog it is.
    :param switches: sections of its configuration that describe switches beside the fake one.
    :ivar url: of the API, without a version.
    :ivar networks: ids by name.
    """

    def __init__(
        self, keystone: cloud.Keystone, switches: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({})
    ) -> None:
        super().__init__()
        self._keystone = keystone
        self._switches = switches

    def _setUp(self) -> None:
        programs = environments.cached("neutron", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        database = f"sqlite:///{self.directory}/neutron.sqlite"
        paste = programs.parent / "etc" / "neutron" / "api-paste.ini"
        (self.directory / "neutron.conf").write_text(self._configuration(database, paste))
        python = programs / "python"
        environments.run(python, "-c", _CREATE, database, timeout=environments.BUILD_TIMEOUT_S)
        where = (f"OS_NEUTRON_CONFIG_DIR={self.directory}", "OS_NEUTRON_CONFIG_FILES=neutron.conf")
        program = ["/usr/bin/env", *where, str(python), "-c", _SERVE, str(port)]
        self.process = lab.Process(program, self.directory / "neutron.log")
        self.addCleanup(self.process.stop)
        self.start()
        self._keystone.publish(self.url, "network", "neutron")
        self._keystone.grant("ingot", "service", "admin")  # beside service: it is to see physical networks and agents
        self._admin = self._keystone.connect(cloud.ADMINISTRATOR, "admin").network
        self.networks = {name: self._create_network(name, vlan) for name, vlan in VLANS.items()}

    def _configuration(self, database: str, paste: pathlib.Path) -> str:
        who = self._keystone.credentials("ingot")
        described = [
            line
            for section, settings in self._switches.items()
            for line in (f"[{section}]", *(f"{name} = {value}" for name, value in settings.items()))
        ]
        return _CONFIGURATION.format(
            directory=self.directory,
            database=database,
            paste=paste,
            physical_network=PHYSICAL_NETWORK,
            switch=SWITCH,
            switch_mac=SWITCH_MAC,
            switches="\n".join(described),
            auth_url=who["auth_url"],
            credentials="\n".join(f"{name} = {value}" for name, value in who.items()),
        )

    def start(self) -> None:
        self.process.start()
        until = time.monotonic() + client.PATIENCE_S
        while True:
            try:
                requests.get(self.url, timeout=client.PATIENCE_S).raise_for_status()
            except requests.RequestException as exc:
                if time.monotonic() > until:
                    raise AssertionError(f"no Neutron:\n{self.process.log.read_text()[-5000:]}") from exc
                time.sleep(0.1)
            else:
                return

    def _create_network(self, name: str, vlan: int) -> str:
        place = {
            "provider_network_type": "vlan",
            "provider_physical_network": PHYSICAL_NETWORK,
            "provider_segmentation_id": vlan,
        }
        # Users of every project may have ports on each.
        network = self._admin.create_network(name=name, is_shared=True, **place)
        self._admin.create_subnet(network_id=network.id, ip_version=4, cidr=f"10.{vlan}.0.0/16", name=name)
        return str(network.id)

    def options(self, url: str = "") -> dict[str, dict[str, Any]]:
        """Return how Ingot uses it.

        :param url: where it is asked; by default, as the catalog says.
        """
        login = {**self._keystone.credentials("ingot"), "auth_type": "password", "region_name": cloud.REGION}
        networks = {f"{name}_network": name for name in NETWORKS if name != "tenant"}
        place = {"endpoint_override": url} if url else {}
        return {
            "DEFAULT": {"enabled_network_interfaces": "neutron,flat,noop"},
            "neutron": {**login, **networks, **place},
        }

    def create_vif(self, network: str = "tenant", **more: Any) -> str:
        """Create a user's port; return its id."""
        return str(self._admin.create_port(network_id=self.networks[network], **more).id)

    def port(self, ident: str) -> dict[str, Any]:
        found: dict[str, Any] = self._admin.get_port(ident).to_dict(original_names=True, computed=False)
        return found

    def list_own(self) -> list[dict[str, Any]]:
        """Return the ports that conductors have created."""
        found = self._admin.ports(device_owner="baremetal:none")
        return [port.to_dict(original_names=True, computed=False) for port in found]


Hook = Callable[["Request"], int | None]


class Request:
    """A request on its way to Neutron.

    :ivar number: of those that change something, which came before.
    """

    def __init__(self, number: int, method: str, path: str, body: bytes) -> None:
        self.number = number
        self.method = method
        self.path = path
        self.body = body


class Gateway(fixtures.Fixture):
    """Forwards to Neutron, and lets a test step in.

    :ivar url: of the API, without a version.
    :ivar before: is called with each request that changes something, before it is sent on: an answer is the status that
        its client gets instead.
    :ivar after: is called when Neutron has done it, and before its client learns that.
    :ivar is_away: while true, no connection is answered.
    """

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target
        self.writes: list[Request] = []
        self.before: Hook = lambda _request: None
        self.after: Hook = lambda _request: None
        self.is_away = False

    def _setUp(self) -> None:
        handler = type("Handler", (_Handler,), {"gateway": self})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.handle_error = lambda *_given: None  # type: ignore[method-assign]  # conductors are killed
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def forward(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> requests.Response | int:
        """Return Neutron's answer, or the status that is sent instead."""
        if self.is_away:
            return 0
        request = None
        if method != "GET":
            request = Request(len(self.writes), method, path, body)
            self.writes.append(request)
            if (status := self.before(request)) is not None:
                return status
        answer = requests.request(method, self._target + path, headers=dict(headers), data=body, timeout=60)
        if request is not None and (status := self.after(request)) is not None:
            return status
        return answer


_NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length", "content-encoding", "date", "server")


class _Handler(http_handler.Handler):
    gateway: Gateway

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.gateway.forward(self.command, self.path, self.headers, body)  # type: ignore[arg-type]
        if isinstance(answer, int):
            if answer:
                error = {"type": "Gate", "message": "as the gate wants", "detail": ""}
                self.answer(answer, {"NeutronError": error}, Connection="close")
            self.close_connection = True
            return
        kept = _select(answer.headers.items())
        self.answer(answer.status_code, answer.content, **kept)

    do_GET = do_POST = do_PUT = do_DELETE = _serve


def _select(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in _NOT_PASSED_ON}
