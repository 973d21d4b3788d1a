"""What is done with a machine while agents and Ingot are listened to, be the agent real or simulated."""

from typing import Any

import testtools

from tests.functional.deployment.lab import MIRROR, User

TEMPLATE = "CUSTOM_MIRROR"
STEP = {"interface": "raid", "step": "apply_configuration", "priority": 90, "args": MIRROR}


class Acts(testtools.TestCase):
    """A test for each act.

    :ivar user: a user of Ingot's API.
    :ivar uuid: of the machine's node.
    :ivar serial: of the machine's second disk.
    :ivar arguments: the kernel arguments of the machine's agent.
    """

    user: User
    uuid: str
    serial: str
    arguments: str

    def start(self, boot_mode: str, **fields: Any) -> None:
        """Enroll a machine.

        :param fields: further ones of its node.
        """
        raise NotImplementedError

    def ask(self, verb: str, state: str, **more: Any) -> None:
        """Request a change of the provision state and wait for its end."""
        raise NotImplementedError

    def choose_image(self, **more: Any) -> None:
        """Select an image for the node.

        :param more: what the instance_info has beside it.
        """
        raise NotImplementedError

    def wait_until_it_says(self, text: str) -> None:
        """Wait for a text on the machine's console."""
        raise NotImplementedError

    def finish(self, act: str) -> None:
        """Process the recording of an act."""
        raise NotImplementedError

    def change(self, field: str, value: Any) -> None:
        self.user.patch(f"/v1/nodes/{self.uuid}", {field: value})

    def make_available(self) -> None:
        self.ask("manage", "manageable")
        self.ask("provide", "available")

    def deploy(self, **more: Any) -> None:
        self.choose_image(**more)
        self.ask("active", "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "contract"}})

    def test_one_disk_and_a_rescue(self) -> None:
        self.start("bios", rescue_interface="agent")
        self.make_available()
        self.change("/properties/root_device", {"serial": self.serial})
        self.deploy()
        self.ask("rescue", "rescue", rescue_password="Let me in 4711")
        self.finish("bios")

    def test_mirror(self) -> None:
        self.start("uefi", raid_interface="agent")
        self.make_available()
        self.user.post("/v1/deploy_templates", {"name": TEMPLATE, "steps": [STEP]})
        self.user.put(f"/v1/nodes/{self.uuid}/traits/{TEMPLATE}", None)
        self.deploy(traits=[TEMPLATE])
        self.finish("uefi")

    def test_no_tls_and_no_such_disk(self) -> None:
        self.start("bios", automated_clean=False)
        self.make_available()
        self.change("/properties/root_device", {"serial": "no such"})
        self.change("/driver_info/kernel_append_params", f"{self.arguments} ipa-ironic-api-version=1.67")
        self.choose_image()
        self.user.provision(self.uuid, "active")
        self.wait_until_it_says("TLS is required by configuration")
        self.ask("deleted", "available")
        self.change("/driver_info/kernel_append_params", self.arguments)
        self.choose_image()
        self.ask("active", "deploy failed")
        self.finish("errors")

    def test_inspection(self) -> None:
        self.start("uefi", inspect_interface="agent")
        self.ask("manage", "manageable")
        self.ask("inspect", "manageable")
        self.finish("look")
