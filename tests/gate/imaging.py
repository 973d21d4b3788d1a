"""A real Glance with its images in files: one without authentication, or one that asks a Keystone."""

import pathlib
import time
from typing import Any

import fixtures
import openstack
import requests

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import client, cloud, environments

REQUIREMENTS = ("glance>=30.0",)

# Glance has no server of its own any more; its application wants one with threads.
_SERVE = """
import socketserver, sys
from wsgiref import simple_server
port, sys.argv = int(sys.argv[1]), ["glance-api"]
from glance.wsgi.api import application
class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128
class Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass
simple_server.make_server("127.0.0.1", port, application, Server, Quiet).serve_forever()
"""

_CONFIGURATION = """
[DEFAULT]
enabled_backends = files:file
[database]
connection = sqlite:///{directory}/glance.sqlite
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = {directory}/images
[os_glance_staging_store]
filesystem_store_datadir = {directory}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {directory}/tasks
[oslo_concurrency]
lock_path = {directory}/locks
[paste_deploy]
config_file = {paste}
"""

# Glance's own rules ask for roles, which no user has without a Keystone.
_PUBLIC_RULES = ("add_image", "get_image", "get_images", "upload_image", "download_image", "modify_image")

_WITH_KEYSTONE = """
flavor = keystone
[keystone_authtoken]
www_authenticate_uri = {auth_url}
auth_type = password
{credentials}
"""


class Glance(fixtures.Fixture):
    """
    :param keystone: whom it asks, and in whose catalog it is; None: every client may do everything.
    :ivar url: of the image API, without a version.
    """

    def __init__(self, keystone: cloud.Keystone | None = None) -> None:
        super().__init__()
        self._keystone = keystone

    def _setUp(self) -> None:
        programs = environments.cached("glance", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in ("images", "staging", "tasks"):
            (self.directory / name).mkdir()
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        config = self.directory / "glance-api.conf"
        config.write_text(self._configuration(programs.parent / "etc" / "glance" / "glance-api-paste.ini"))
        migrate = (programs / "glance-manage", "--config-file", config, "db_sync")
        environments.run(*migrate, timeout=environments.BUILD_TIMEOUT_S)
        program = ["/usr/bin/env", f"OS_GLANCE_CONFIG_DIR={self.directory}", str(programs / "python")]
        self.process = lab.Process([*program, "-c", _SERVE, str(port)], self.directory / "glance.log")
        self.addCleanup(self.process.stop)
        self.process.start()
        self._wait()
        if self._keystone:
            self._keystone.publish(self.url, "image", "glance")

    def _configuration(self, paste: pathlib.Path) -> str:
        settings = _CONFIGURATION.format(directory=self.directory, paste=paste)
        if self._keystone is None:
            policy = self.directory / "policy.yaml"
            policy.write_text("".join(f'"{rule}": ""\n' for rule in _PUBLIC_RULES))
            return f"{settings}[oslo_policy]\npolicy_file = {policy}\n"
        who = self._keystone.credentials("ingot")
        lines = "\n".join(f"{name} = {value}" for name, value in who.items())
        return settings.rstrip("\n") + _WITH_KEYSTONE.format(auth_url=who["auth_url"], credentials=lines)

    def _wait(self) -> None:
        until = time.monotonic() + client.PATIENCE_S
        while True:
            try:
                requests.get(f"{self.url}/healthcheck", timeout=client.PATIENCE_S).raise_for_status()
            except requests.RequestException as exc:
                if time.monotonic() > until:
                    raise AssertionError(f"no Glance:\n{self.process.log.read_text()[-5000:]}") from exc
                time.sleep(0.1)
            else:
                return

    def connect(self) -> Any:
        """Return openstacksdk's image API, for a Glance without authentication."""
        made = openstack.connect(
            load_envvars=False, load_yaml_config=False, auth_type="none", image_endpoint_override=self.url
        )
        self.addCleanup(made.close)
        return made.image


def upload(images: Any, name: str, content: bytes, **more: Any) -> str:
    """Make an image with openstacksdk, and return its id.

    :param images: the image API of a connection.
    """
    about = {"disk_format": "raw", "container_format": "bare", "allow_duplicates": True}
    return str(images.create_image(name, data=content, validate_checksum=False, **{**about, **more}).id)
