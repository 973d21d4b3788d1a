"""A real Keystone on SQLite, with the people of a small cloud; and an Ingot that asks it who they are."""

import getpass
import grp
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import fixtures
import msgpack
import openstack
import requests
from cryptography import fernet
from openstack import connection

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import client, environments

REQUIREMENTS = ("keystone>=27.0",)
ADMINISTRATOR = "admin"
PASSWORD = "keystone of the gate"
REGION = "gate"

# Keystone reads the command line when it is imported, and its own server is the one of the operator's choice. This one
# serves one request after the other: SQLite has one writer, and refuses those who wait in vain.
_SERVE = """
import sys
from wsgiref import simple_server
port, sys.argv = int(sys.argv[1]), ["keystone"]
from keystone.wsgi.api import application
class Server(simple_server.WSGIServer):
    request_queue_size = 128
simple_server.make_server("127.0.0.1", port, application, server_class=Server).serve_forever()
"""

_CONFIGURATION = """
[database]
connection = sqlite:///{directory}/keystone.sqlite
[token]
provider = fernet
[fernet_tokens]
key_repository = {directory}/fernet
[fernet_receipts]
key_repository = {directory}/fernet
[credential]
key_repository = {directory}/credential
[cache]
enabled = true
backend = dogpile.cache.memory
[identity]
password_hash_rounds = 4
"""

_AN_HOUR_S = 3600

PEOPLE = {
    "operator": ("system", "admin"),
    "system-manager": ("system", "manager"),
    "system-member": ("system", "member"),
    "auditor": ("system", "reader"),
    "owner-admin": ("owner", "admin"),
    "owner-member": ("owner", "member"),
    "owner-reader": ("owner", "reader"),
    "lessee-manager": ("lessee", "manager"),
    "lessee-member": ("lessee", "member"),
    "stranger": ("other", "admin"),
    "missing": ("other", None),
    "ingot": ("service", "service"),
}
"""Users with the project (or the system) and the role there."""


class Keystone(fixtures.Fixture):
    """
    :ivar url: of the identity API.
    :ivar projects: ids by name.
    """

    def _setUp(self) -> None:
        self._programs = environments.cached("keystone", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}/v3"
        (self.directory / "keystone.conf").write_text(_CONFIGURATION.format(directory=self.directory))
        for name in ("fernet", "credential"):
            (self.directory / name).mkdir(mode=0o700)
        user, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
        keys = ("--keystone-user", user, "--keystone-group", group)
        self._manage("db_sync")
        self._manage("fernet_setup", *keys)
        self._manage("credential_setup", *keys)
        urls = (word for name in ("admin", "internal", "public") for word in (f"--bootstrap-{name}-url", self.url))
        self._manage("bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION, *urls)
        program = ["/usr/bin/env", f"OS_KEYSTONE_CONFIG_DIR={self.directory}", str(self._programs / "python")]
        self.process = lab.Process([*program, "-c", _SERVE, str(port)], self.directory / "keystone.log")
        self.addCleanup(self.process.stop)
        self.process.start()
        self._wait()
        self._settle()

    def _manage(self, *words: str) -> None:
        config = ("--config-file", str(self.directory / "keystone.conf"))
        environments.run(self._programs / "keystone-manage", *config, *words, timeout=environments.BUILD_TIMEOUT_S)

    def _wait(self) -> None:
        until = time.monotonic() + client.PATIENCE_S
        while True:
            try:
                requests.get(self.url, timeout=client.PATIENCE_S).raise_for_status()
            except requests.RequestException as exc:
                if time.monotonic() > until:
                    raise AssertionError(f"no Keystone:\n{self.process.log.read_text()[-5000:]}") from exc
                time.sleep(0.1)
            else:
                return

    def _settle(self) -> None:
        """Create projects, users and their roles."""
        admin = self.connect(ADMINISTRATOR, "system").identity
        roles = {role.name: role for role in admin.roles()}
        names = {where for where, _role in PEOPLE.values()} - {"system"}
        projects = {name: admin.create_project(name=name, domain_id="default") for name in sorted(names)}
        self.projects = {name: project.id for name, project in projects.items()}
        for person, (where, role) in PEOPLE.items():
            user = admin.create_user(name=person, password=PASSWORD, domain_id="default")
            if role is None:
                continue
            if where == "system":
                admin.assign_system_role_to_user(user, roles[role], "all")
            else:
                admin.assign_project_role_to_user(projects[where], user, roles[role])

    def grant(self, person: str, where: str, role: str) -> None:
        """Give a user one more role in a project."""
        admin = self.connect(ADMINISTRATOR, "system").identity
        found = admin.find_role(role, ignore_missing=False)
        user = admin.find_user(person, ignore_missing=False)
        admin.assign_project_role_to_user(self.projects[where], user, found)

    def publish(self, url: str, kind: str = "baremetal", name: str = "ingot") -> None:
        """Enter a service into the catalog."""
        admin = self.connect(ADMINISTRATOR, "system").identity
        service = admin.create_service(type=kind, name=name)
        admin.create_endpoint(service_id=service.id, interface="public", region_id=REGION, url=url)

    def credentials(self, person: str, where: str | None = None) -> dict[str, str]:
        """Return how a user authenticates, in the words of clients."""
        where = where or PEOPLE[person][0]
        scope = (
            {"system_scope": "all"} if where == "system" else {"project_name": where, "project_domain_id": "default"}
        )
        return {
            "auth_url": self.url,
            "username": person,
            "password": PASSWORD,
            "user_domain_id": "default",
            **scope,
        }

    def expired(self, token: str) -> str:
        """Return an expired token: one of Keystone's, signed again with its key and an earlier end."""
        keys = self.directory / "fernet"
        newest = max(keys.iterdir(), key=lambda key: int(key.name))
        box = fernet.Fernet(newest.read_bytes())
        payload = msgpack.unpackb(box.decrypt(_padded(token)))
        ends = [index for index, value in enumerate(payload) if isinstance(value, float)]
        payload[ends[0]] = time.time() - _AN_HOUR_S
        return box.encrypt(msgpack.packb(payload)).rstrip(b"=").decode()

    def restart(self) -> None:
        """Start it again after it was stopped."""
        self.process.start()
        self._wait()

    def count_validations(self) -> int:
        """Return how many tokens it was asked about."""
        return self.process.log.read_text().count('"GET /v3/auth/tokens')

    def revoke(self, token: str) -> None:
        """Revoke a token, as its user does who logs out."""
        headers = dict.fromkeys(("X-Auth-Token", "X-Subject-Token"), token)
        requests.delete(f"{self.url}/auth/tokens", headers=headers, timeout=client.PATIENCE_S).raise_for_status()

    def delegate(self, person: str, name: str, rules: list[dict[str, str]] | None) -> str:
        """Create an application credential of a user, and return a token that it gives.

        :param rules: what may be requested with it; None: whatever the user may.
        """
        user = self.connect(person)
        about = {"name": name, "secret": PASSWORD} | ({"access_rules": rules} if rules is not None else {})
        body = {"application_credential": about}
        made = user.identity.post(f"/users/{user.current_user_id}/application_credentials", json=body)
        made.raise_for_status()
        return self._log_in(
            "v3applicationcredential",
            application_credential_id=made.json()["application_credential"]["id"],
            application_credential_secret=PASSWORD,
        )

    def entrust(self, person: str, trustee: str, role: str) -> str:
        """Have a user trust another one with a role in the project, and return a token that it gives."""
        user, other = self.connect(person), self.connect(trustee)
        about = {
            "trustor_user_id": user.current_user_id,
            "trustee_user_id": other.current_user_id,
            "project_id": user.current_project_id,
            "roles": [{"name": role}],
            "impersonation": False,
        }
        made = user.identity.post("/OS-TRUST/trusts", json={"trust": about})
        made.raise_for_status()
        scope = {"trust_id": made.json()["trust"]["id"], "user_domain_id": "default"}
        return self._log_in("v3password", username=trustee, password=PASSWORD, **scope)

    def _log_in(self, kind: str, **auth: str) -> str:
        made = openstack.connect(
            load_envvars=False,
            load_yaml_config=False,
            region_name=REGION,
            auth_type=kind,
            auth={"auth_url": self.url, **auth},
        )
        self.addCleanup(made.close)
        return str(made.auth_token)

    def connect(self, person: str, where: str | None = None) -> connection.Connection:
        """Return a connection of openstacksdk for a user."""
        made = openstack.connect(
            load_envvars=False,
            load_yaml_config=False,
            region_name=REGION,
            auth_type="password",
            auth=self.credentials(person, where),
            baremetal_api_version="1.115",
            identity_interface="public",
        )
        self.addCleanup(made.close)
        return made


def _padded(token: str) -> bytes:
    return token.encode() + b"=" * (-len(token) % 4)


class Ingot(client.Ingot):
    """The all-in-one that asks a Keystone.

    :param options: as of its base.
    """

    def __init__(self, keystone: Keystone, options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        super().__init__(options=options)
        self._keystone = keystone

    def _setUp(self) -> None:
        self._operator = self._keystone.connect("operator")
        super()._setUp()
        self._keystone.publish(self.url)

    def _credentials(self) -> dict[str, str]:
        options = {**self._keystone.credentials("operator"), "auth_type": "password", "region_name": REGION}
        return {name.replace("_", "-"): value for name, value in options.items()}

    def _configuration(self, port: int) -> dict[str, dict[str, Any]]:
        settings = super()._configuration(port)
        settings["DEFAULT"]["auth_strategy"] = "keystone"
        settings["keystone_authtoken"] = {
            **self._keystone.credentials("ingot"),
            "auth_type": "password",
            "www_authenticate_uri": self._keystone.url,
            "interface": "public",
            "region_name": REGION,
            "service_token_roles_required": True,
        }
        return settings

    def get(self, path: str) -> Any:
        self.session.headers["X-Auth-Token"] = self._operator.auth_token
        return super().get(path)
