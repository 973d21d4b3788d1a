"""A laboratory whose API asks who one is, for tests that use its console as a person does."""

from collections.abc import Mapping
from typing import Any

import bcrypt

from tests.functional.deployment import lab

USER = "ada"
PASSWORD = "correct horse"
SOL = {"console_interface": "ipmitool-sol"}
IMAGE_FAULT = "image_404"

_DISCOVERY = {"auto_discovery": {"enabled": "true", "driver": "ipmi"}}


class Site(lab.Lab):
    """The all-in-one with http_basic and one user, and a rack; unknown machines come into the inbox."""

    def __init__(self, machines: int = 1) -> None:
        super().__init__(machines=machines, options=_DISCOVERY)

    def own_options(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        users = self.directory / "users"
        users.write_text(f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
        return {"DEFAULT": {"auth_strategy": "http_basic", "http_basic_auth_user_file": users}}

    def make_user(self) -> lab.User:
        return lab.User(self.url, (USER, PASSWORD))

    def enroll_fake(self, name: str, state: str = "enroll") -> str:
        """Enroll a node without a machine, and bring it on the way to available as far as a state."""
        uuid: str = self.user.post("/v1/nodes", {"name": name, "driver": "fake-hardware"})["uuid"]
        if state != "enroll":
            self.user.provision(uuid, "manage")
            self.reach(uuid, "manageable")
        if state == "available":
            self.user.provision(uuid, "provide")
            self.reach(uuid, "available")
        return uuid

    def start_deploy(self, index: int, **fields: Any) -> str:
        """Enroll a machine of the rack and begin to deploy it; return its uuid."""
        uuid = self.enroll(index, **fields)
        self.make_available(uuid)
        self.set_image(uuid)
        self.user.provision(uuid, "active")
        return uuid
