"""Makes machines nodes of an Ingot or an Ironic, deploys them, and looks after them, by openstacksdk. DevStack runs it.

    machines.py enroll   --cloud CLOUD (--rack URL | --hardware FILE) --driver DRIVER ...
    machines.py deploy   --cloud CLOUD --node NODE --image URL
    machines.py undeploy --cloud CLOUD --node NODE
    machines.py wait     --cloud CLOUD --conductors NUMBER
    machines.py track    --cloud CLOUD --placement CLOUD --resource-class CLASS ...

Exit status: 0 all machines are where they should be; 1 not, and the last line says which and why.
"""

import argparse
import functools
import json
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openstack
from keystoneauth1.exceptions import ClientException
from openstack.exceptions import SDKException, raise_from_response

_POLL_S = 2.0
_HTTP_TIMEOUT_S = 30
_FIELDS = 4


class MachineError(Exception):
    """A machine is not where it should be; the message says which and why."""


@dataclass(frozen=True)
class Cabling:
    """To what all machines are cabled, as a mechanism driver of Neutron knows it.

    :param switch: ``switch_id`` and ``switch_info`` of their ports; without, ports say nothing of a switch.
    :param physical_network: without, their ports may be on any.
    """

    switch: Mapping[str, str] = field(default_factory=dict)
    physical_network: str | None = None

    def describe(self, machine: str, number: int) -> dict[str, Any]:
        """Return the fields of the port for a card."""
        link = {"local_link_connection": {**self.switch, "port_id": f"{machine}-{number}"}} if self.switch else {}
        return link | _without_none({"physical_network": self.physical_network})


@dataclass(frozen=True)
class Machine:
    """What is known of a machine before it is a node.

    :param bmc: what driver_info says of its BMC, and how it boots.
    """

    name: str
    macs: tuple[str, ...]
    bmc: Mapping[str, Any] = field(repr=False)


def read_rack(url: str, driver: str, username: str, password: str) -> list[Machine]:
    """Return the machines of a virtual rack.

    :param url: of its control.
    """
    with urllib.request.urlopen(f"{url}/machines", timeout=_HTTP_TIMEOUT_S) as answer:  # noqa: S310 - on this host
        found = json.load(answer)["machines"]
    return [Machine(one["name"], tuple(one["macs"]), _rack_info(one, driver, username, password)) for one in found]


def _rack_info(machine: Mapping[str, Any], driver: str, username: str, password: str) -> dict[str, Any]:
    """Return driver_info of a machine of a rack."""
    info = _rack_bmc(machine, driver) | _login(driver, username, password)
    # A QEMU machine has a private network; its agent must be said under which address it is reached.
    if arguments := machine["kernel_arguments"]:
        info["kernel_append_params"] = f"%default% {arguments}"
    return info


def _rack_bmc(machine: Mapping[str, Any], driver: str) -> dict[str, Any]:
    if driver == "ipmi":
        return {"ipmi_address": machine["bmc_address"], "ipmi_port": machine["bmc_port"]}
    if driver == "redfish":
        face = machine["redfish"]
        # The rack's own authority signs its certificate.
        return {"redfish_address": face["address"], "redfish_system_id": face["system"], "redfish_verify_ca": False}
    raise MachineError(f"machines of a rack are enrolled as ipmi or redfish, not as {driver}")


def _login(driver: str, username: str, password: str) -> dict[str, str]:
    prefix = "ipmi" if driver == "ipmi" else "redfish"
    return {f"{prefix}_username": username, f"{prefix}_password": password}


def read_hardware(path: Path, driver: str) -> list[Machine]:
    """Return the machines that a file lists: address of the BMC, MAC, user and password on each line.

    :raises MachineError: the file cannot be read, or a line has too few words.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError as exc:
        raise MachineError(f"IRONIC_HWINFO_FILE {path}: {exc.strerror}") from exc
    return [_read_line(path, number, line, driver) for number, line in enumerate(lines, 1) if _says_something(line)]


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _read_line(path: Path, number: int, line: str, driver: str) -> Machine:
    words = line.split()
    if len(words) < _FIELDS:
        raise MachineError(f"{path}, line {number}: it needs BMC address, MAC address, user and password")
    address, mac, username, password = words[:_FIELDS]
    info = {"ipmi_address": address} if driver == "ipmi" else {"redfish_address": address}
    return Machine(f"node-{number - 1}", (mac.lower(),), info | _login(driver, username, password))


class Nodes:
    """The nodes of a cloud.

    :param cloud: its name in clouds.yaml.
    :param timeout: seconds in which machines must reach a state.
    """

    def __init__(self, cloud: str, timeout: float, report: Callable[[str], None]) -> None:
        self._cloud = openstack.connect(cloud=cloud)
        self._api = self._cloud.baremetal
        self._timeout = timeout
        self._report = report

    def close(self) -> None:
        """Close the connections."""
        self._cloud.close()

    def enroll(
        self, machines: Sequence[Machine], common: Mapping[str, Any], traits: Sequence[str], cabling: Cabling
    ) -> None:
        """Make machines available nodes; those that are nodes already stay as they are.

        :param common: fields that all nodes get; its driver_info is added to that of each BMC.
        :raises MachineError: one of them does not become available.
        """
        known = {node.name for node in self._api.nodes()}
        new = [machine for machine in machines if machine.name not in known]
        fresh = [self._create(machine, common, traits, cabling) for machine in new]
        for verb, state in (("manage", "manageable"), ("provide", "available")):
            self._move(fresh, verb, state)

    def _create(self, machine: Machine, common: Mapping[str, Any], traits: Sequence[str], cabling: Cabling) -> str:
        info = {**common.get("driver_info", {}), **machine.bmc}
        node = self._api.create_node(**{**common, "name": machine.name, "driver_info": info})
        for number, mac in enumerate(machine.macs):
            self._api.create_port(node_id=node.id, address=mac, **cabling.describe(machine.name, number))
        if traits:
            self._api.set_node_traits(node, list(traits))
        self._report(f"{machine.name} is node {node.id}, with {', '.join(machine.macs)}")
        return str(node.id)

    def deploy(self, name: str, image: Mapping[str, str]) -> None:
        """Deploy an image on a node.

        :param image: fields of instance_info.
        """
        node = self._api.get_node(name)
        self._api.update_node(node, instance_info=dict(image))
        self._move([node.id], "active", "active")

    def undeploy(self, name: str) -> None:
        """Tear down a node and wait until it is available again."""
        self._move([self._api.get_node(name).id], "deleted", "available")

    def wait_for_conductors(self, number: int) -> None:
        """Wait until so many conductors are alive.

        :raises MachineError: there are fewer.
        """
        self._wait(number, self._count_alive, "conductors are alive")

    def _count_alive(self) -> int:
        return sum(bool(one.alive) for one in self._api.conductors(details=True))

    def wait_until_tracked(self, placement: Any, resource_class: str, traits: Sequence[str]) -> None:
        """Wait until servers can be made of all available nodes of a resource class.

        :param placement: the proxy of openstacksdk.
        :raises MachineError: Placement offers fewer.
        """
        nodes = self._api.nodes(resource_class=resource_class, provision_state="available", is_maintenance=False)
        offered = functools.partial(count_offered, placement, resource_class, traits)
        self._wait(len(list(nodes)), offered, f"machines of the class {resource_class} are offered by Placement")

    def _wait(self, number: int, count: Callable[[], int], what: str) -> None:
        until = time.monotonic() + self._timeout
        while (found := count()) < number:
            if time.monotonic() > until:
                raise MachineError(f"{found} of {number} {what} after {self._timeout:.0f} s")
            time.sleep(_POLL_S)

    def _move(self, nodes: Sequence[str], verb: str, state: str) -> None:
        for node in nodes:
            self._api.set_node_provision_state(node, verb)
        until = time.monotonic() + self._timeout
        late = list(nodes)
        while late := [node for node in late if not self._is_there(node, state)]:
            if time.monotonic() > until:
                raise MachineError(f"not {state} after {self._timeout:.0f} s: {', '.join(map(self._describe, late))}")
            time.sleep(_POLL_S)

    def _is_there(self, node_id: str, state: str) -> bool:
        """Say whether a node is in a state, and unlocked.

        :raises MachineError: it has failed.
        """
        node = self._api.get_node(node_id)
        refused = state == "manageable" and node.provision_state == "enroll" and node.last_error
        if refused or node.provision_state.endswith("failed") or node.provision_state == "error":
            raise MachineError(self._describe(node_id))
        if node.provision_state != state or node.reservation:
            return False
        self._report(f"{node.name} is {state}")
        return True

    def _describe(self, node_id: str) -> str:
        node = self._api.get_node(node_id)
        return f"{node.name} is {node.provision_state}: {node.last_error or 'without an error'}"


def count_offered(placement: Any, resource_class: str, traits: Sequence[str]) -> int:
    """Return of how many machines of a resource class servers can be made, as Placement knows from Nova."""
    query = {"resources": f"CUSTOM_{re.sub('[^A-Z0-9_]', '_', resource_class.upper())}:1"}
    if traits:
        query["required"] = ",".join(traits)
    answer = placement.get("/resource_providers", params=query, microversion="1.18")
    raise_from_response(answer)
    return len(answer.json()["resource_providers"])


def common_fields(given: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that all nodes get."""
    properties = {
        "cpus": given.cpus,
        "memory_mb": given.memory,
        "local_gb": given.disk,
        "cpu_arch": given.arch,
        "capabilities": "boot_mode:uefi",
    }
    fields = {
        "driver": given.driver,
        "resource_class": given.resource_class,
        "driver_info": _without_none({"deploy_kernel": given.kernel, "deploy_ramdisk": given.ramdisk}),
        "properties": _without_none(properties),
        "owner": given.owner,
        "shard": given.shard,
        "network_interface": given.network_interface,
    }
    return _without_none(fields)


def cabling(given: argparse.Namespace) -> Cabling:
    """Return to what all machines are cabled."""
    switch = _without_none({"switch_id": given.switch_id, "switch_info": given.switch_info})
    return Cabling(switch, given.physical_network)


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _enroll(nodes: Nodes, given: argparse.Namespace) -> None:
    if given.rack:
        machines = read_rack(given.rack, given.driver, given.username, given.password)
    else:
        machines = read_hardware(given.hardware, given.driver)
    nodes.enroll(machines, common_fields(given), given.trait, cabling(given))


def _deploy(nodes: Nodes, given: argparse.Namespace) -> None:
    image = {"image_source": given.image, "image_disk_format": "raw"}
    if given.sha256:
        image |= {"image_os_hash_algo": "sha256", "image_os_hash_value": given.sha256}
    nodes.deploy(given.node, image)


def _undeploy(nodes: Nodes, given: argparse.Namespace) -> None:
    nodes.undeploy(given.node)


def _wait(nodes: Nodes, given: argparse.Namespace) -> None:
    nodes.wait_for_conductors(given.conductors)


def _track(nodes: Nodes, given: argparse.Namespace) -> None:
    with openstack.connect(cloud=given.placement) as cloud:
        nodes.wait_until_tracked(cloud.placement, given.resource_class, given.trait)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cloud", required=True, help="name in clouds.yaml")
    shared.add_argument("--timeout", type=float, default=600.0, help="seconds until a state is reached (default 600)")
    commands = top.add_subparsers(dest="command", required=True)
    enroll = commands.add_parser("enroll", parents=[shared], help="make machines available nodes")
    source = enroll.add_mutually_exclusive_group(required=True)
    source.add_argument("--rack", metavar="URL", help="of the control of a virtual rack")
    source.add_argument("--hardware", type=Path, metavar="FILE", help="one machine a line")
    enroll.add_argument("--driver", required=True)
    for name in ("username", "password", "kernel", "ramdisk", "resource-class", "owner", "shard", "arch"):
        enroll.add_argument(f"--{name}")
    for name in ("network-interface", "physical-network", "switch-id", "switch-info"):
        enroll.add_argument(f"--{name}")
    for name in ("cpus", "memory", "disk"):
        enroll.add_argument(f"--{name}", type=int)
    enroll.add_argument("--trait", action="append", default=[])
    enroll.set_defaults(run=_enroll)
    deploy = commands.add_parser("deploy", parents=[shared], help="deploy an image on a node")
    deploy.add_argument("--node", required=True)
    deploy.add_argument("--image", required=True, metavar="URL")
    deploy.add_argument("--sha256", help="of the image; releases before 0.3 need it for files, too")
    deploy.set_defaults(run=_deploy)
    undeploy = commands.add_parser("undeploy", parents=[shared], help="tear down a node")
    undeploy.add_argument("--node", required=True)
    undeploy.set_defaults(run=_undeploy)
    wait = commands.add_parser("wait", parents=[shared], help="wait for conductors")
    wait.add_argument("--conductors", type=int, required=True)
    wait.set_defaults(run=_wait)
    track = commands.add_parser("track", parents=[shared], help="wait until Nova can make servers of all machines")
    track.add_argument("--placement", required=True, help="the cloud whose Placement is asked")
    track.add_argument("--resource-class", required=True)
    track.add_argument("--trait", action="append", default=[])
    track.set_defaults(run=_track)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    given = parser().parse_args(arguments)
    try:
        nodes = Nodes(given.cloud, given.timeout, lambda line: print(line, flush=True))
        try:
            given.run(nodes, given)
        finally:
            nodes.close()
    except (MachineError, SDKException, ClientException, OSError) as exc:
        print(f"machines.py: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
