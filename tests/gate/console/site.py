"""A laboratory whose API asks who one is, for tests that use its console as a person does."""

from collections.abc import Mapping
from typing import Any

import bcrypt

from tests.functional.deployment import lab

USER = "ada"
PASSWORD = "correct horse"
SOL = {"console_interface": "ipmitool-sol"}
IMAGE_FAULT = "image_404"

_TEMPLATE = {
    "name": "CUSTOM_IMAGE",
    "steps": [{"interface": "deploy", "step": "write_image", "args": {}, "priority": 80}],
}
_RUNBOOK = {
    "name": "CUSTOM_ERASE",
    "steps": [{"interface": "deploy", "step": "erase_devices_metadata", "args": {}, "order": 1}],
}
_DISCOVERY = {"auto_discovery": {"enabled": "true", "driver": "ipmi"}}


class Site(lab.Lab):
    """The all-in-one with http_basic and one user, and a rack; unknown machines come into the inbox."""

    def __init__(self, machines: int = 1, rack: Mapping[str, Any] | None = None) -> None:
        super().__init__(machines=machines, rack=rack, options=_DISCOVERY)

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

    def furnish(self) -> None:
        """Have a machine in use, a failed one and an unknown one, nodes in three states and in maintenance, plans."""
        names = [machine["name"] for machine in self.rack.machines]
        self.rack.control.power(names[2], "on")
        self.rack.control.order_fault(names[1], IMAGE_FAULT)
        active = self.start_deploy(0, resource_class="large", **SOL)
        failed = self.start_deploy(1, resource_class="large")
        for number in range(12):
            self.enroll_fake(f"spare-{number:02}", ("enroll", "manageable", "available")[number % 3])
        self.user.put("/v1/nodes/spare-00/maintenance", {"reason": "its power supply is exchanged on Monday"})
        self.user.post("/v1/deploy_templates", _TEMPLATE)
        self.user.post("/v1/runbooks", _RUNBOOK)
        self.reach(active, "active")
        self.reach(failed, "deploy failed")
        self.eventually(lambda: self.user.get("/ingot/v1/inbox")["inbox"], "a machine is in the inbox")
