"""A user of the OpenStack Bare Metal API: everything here goes through openstacksdk, as it would against any cloud."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openstack
import requests
from openstack.baremetal.v1.node import Node

from quickstart import timeline
from quickstart.failure import Failure

TEMPLATE = "CUSTOM_RAID_MIRROR"
TEMPLATE_STEP = {
    "interface": "raid",
    "step": "apply_configuration",
    "args": {
        "raid_config": {
            "logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}]
        },
        "delete_existing": True,
    },
    "priority": 90,
}

_POLL_S = 0.25
_FAILED = ("adopt failed", "clean failed", "deploy failed", "error", "inspect failed")
_REQUIRED_INTERFACES = ("boot", "deploy", "management", "power", "raid")


@dataclass(frozen=True)
class Image:
    """What is deployed: a raw image, and the agent's kernel and ramdisk; all three are URLs.

    :param sha256: of the image, in hexadecimal.
    """

    url: str
    sha256: str
    kernel: str
    ramdisk: str


@dataclass(frozen=True)
class Bmc:
    """How a machine's BMC is reached."""

    address: str
    port: int
    username: str
    password: str


class User:
    """A user with machines and an address of the API.

    :param report: called with the nodes each time they were looked at.
    :param timeout: seconds in which machines must reach the state that they are waited for in.
    """

    def __init__(self, api_url: str, report: Callable[[Sequence[Node]], None], timeout: float) -> None:
        self._api_url = api_url
        self._report = report
        self._timeout = timeout
        # A clouds.yaml or variables of the caller's real clouds have no place here.
        self._cloud = openstack.connect(load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=api_url)
        self._api = self._cloud.baremetal

    def close(self) -> None:
        self._cloud.close()

    def enroll(self, name: str, bmc: Bmc, macs: Iterable[str], image: Image) -> Node:
        """Make a machine known."""
        node = self._api.create_node(
            name=name,
            driver="ipmi",
            driver_info={
                "ipmi_address": bmc.address,
                "ipmi_port": bmc.port,
                "ipmi_username": bmc.username,
                "ipmi_password": bmc.password,
                "deploy_kernel": image.kernel,
                "deploy_ramdisk": image.ramdisk,
            },
            properties={"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
            resource_class="baremetal",
            deploy_interface="direct",
            raid_interface="agent",
        )
        for mac in macs:
            self._api.create_port(node_id=node.id, address=mac)
        return node

    def add_template(self) -> None:
        """Create the deploy template that asks for a mirror, for nodes with the trait of the same name."""
        self._api.create_deploy_template(name=TEMPLATE, steps=[TEMPLATE_STEP])

    def choose_image(self, node: Node, image: Image, mirrored: bool) -> None:
        """Say what is to be deployed on a node, and ask for the template if it is to be mirrored."""
        instance_info: dict[str, Any] = {
            "image_source": image.url,
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": image.sha256,
            "image_disk_format": "raw",
        }
        if mirrored:
            # By its ID: given the object, openstacksdk notes the trait in it and would send it again with what follows.
            self._api.add_node_trait(node.id, TEMPLATE)
            instance_info["traits"] = [TEMPLATE]
        self._api.update_node(node.id, instance_info=instance_info)

    def validate(self, node: Node) -> None:
        """Have the service check everything that a deployment needs."""
        self._api.validate_node(node, required=_REQUIRED_INTERFACES)

    def ask(self, node: Node, verb: str, config_drive: Mapping[str, Any] | None = None) -> None:
        """Ask for a change of the provision state: ``manage``, ``provide``, ``active``, ``deleted``."""
        drive = dict(config_drive) if config_drive else None
        self._api.set_node_provision_state(node, verb, config_drive=drive)

    def wait(self, nodes: Sequence[Node], state: str) -> list[Node]:
        """Return the nodes once all are in a provision state.

        :raises Failure: a node failed, with its last_error, or the time is over.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            found = self.read_nodes(nodes)
            self._report(found)
            for node in found:
                _check(node, state)
            if all(node.provision_state == state for node in found):
                return found
            if time.monotonic() > deadline:
                late = ", ".join(f"{n.name} is {n.provision_state}" for n in found if n.provision_state != state)
                raise Failure(f"not {state} after {self._timeout:.0f} s: {late}")
            time.sleep(_POLL_S)

    def read_nodes(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes as they are now, in the same order."""
        found = {node.id: node for node in self._api.nodes(details=True)}
        return [found[node.id] for node in nodes]

    def boot_device(self, node: Node) -> tuple[str, bool]:
        """Return the boot device that the service reads from the BMC now, and whether it is persistent."""
        answer = self._api.get_node_boot_device(node)
        return str(answer["boot_device"]), bool(answer["persistent"])

    def timeline(self, node: Node) -> timeline.Run:
        """Return what a node's last flow did."""
        return timeline.read(self._get(f"{self._api_url}/ingot/v1/nodes/{node.id}/timeline").json())

    def read_console(self, url: str) -> list[str]:
        """Return the names of the machines that the web console shows, in order.

        :raises Failure: its page or the list is not there.
        """
        self._get(url)
        return [node["name"] for node in self._get(f"{self._api_url}/ingot/v1/fleet?sort=name").json()["nodes"]]

    def _get(self, url: str) -> requests.Response:
        """Read what openstacksdk does not know: Ingot's own API, and its console."""
        answer = requests.get(url, timeout=30)
        if answer.status_code != 200:
            raise Failure(f"GET {url}: HTTP {answer.status_code} {answer.text[:300]}")
        return answer


def _check(node: Node, target: str) -> None:
    """Make sure that a node is still on its way.

    :raises Failure: with its last_error.
    """
    refused = target == "manageable" and node.provision_state == "enroll" and node.last_error
    if refused or node.provision_state in _FAILED:
        raise Failure(f"{node.name} is {node.provision_state}: {node.last_error}")


def config_drive(node: Node, mac: str) -> dict[str, Any]:
    """Return what a machine is to find on its config drive: its name, what to do at first boot, its network."""
    return {
        "meta_data": {"uuid": node.id, "name": node.name, "hostname": f"{node.name}.quickstart.test"},
        "user_data": f"#cloud-config\nhostname: {node.name}\nfinal_message: deployed by Ingot\n",
        "network_data": {
            "links": [{"id": "nic0", "type": "phy", "ethernet_mac_address": mac, "mtu": 1500}],
            "networks": [{"id": "network0", "type": "ipv4_dhcp", "link": "nic0", "network_id": "quickstart"}],
            "services": [],
        },
    }
