"""Machines go from network to network of a real Neutron; whatever dies or is away on the way, no port stays behind."""

import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import openstack
import testtools
from openstack import exceptions

from tests.functional.deployment import lab
from tests.gate import cloud, networking, switches

_PORT = "machine0"
_FAKE_LINK = {"switch_id": networking.SWITCH_MAC, "switch_info": networking.SWITCH, "port_id": "port-0"}
_LINK = {"switch_id": switches.MAC, "switch_info": switches.NAME, "port_id": _PORT}
_MACHINES = 2
_QUICK = {"neutron": {"port_sweep_interval": 5}}


class NeutronTest(testtools.TestCase):
    """The tests share a cloud and a rack; each has a machine of its own, and none of them leaves a port."""

    keystone: ClassVar[cloud.Keystone]
    switch: ClassVar[switches.OpenVSwitch]
    neutron: ClassVar[networking.Neutron]
    gateway: ClassVar[networking.Gateway]
    bench: ClassVar[lab.Lab]
    machines: ClassVar[list[int]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keystone = cls.enterClassContext(cloud.Keystone())
        cls.switch = cls.enterClassContext(switches.OpenVSwitch((_PORT,), list(networking.VLANS.values())))
        cls.neutron = cls.enterClassContext(networking.Neutron(cls.keystone, cls.switch.options()))
        cls.gateway = cls.enterClassContext(networking.Gateway(cls.neutron.url))
        options = cls.neutron.options(cls.gateway.url)
        options["neutron"] |= _QUICK["neutron"]
        cls.bench = cls.enterClassContext(lab.Lab(machines=_MACHINES, options=options))

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.forget_hooks)
        self.uuid = ""

    def forget_hooks(self) -> None:
        self.gateway.before = self.gateway.after = lambda _request: None
        self.gateway.is_away = False

    def enroll(self, index: int = 0, link: Mapping[str, str] = _FAKE_LINK) -> str:
        """Enroll a machine; it goes with the test.

        :param link: what its port is cabled to.
        """
        self.uuid = self.bench.enroll(index, network_interface="neutron")
        for port in self.bench.user.get(f"/v1/nodes/{self.uuid}/ports")["ports"]:
            self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/local_link_connection": link})
        self.addCleanup(self.delete, self.uuid)
        return self.uuid

    def delete(self, uuid: str) -> None:
        """Delete a node whatever its state is, if it is there."""
        hold = [{"op": "add", "path": "/maintenance", "value": True}]
        if self.bench.user.request("PATCH", f"/v1/nodes/{uuid}", hold).status_code != 404:
            self.bench.user.delete(f"/v1/nodes/{uuid}")

    def own_ports(self) -> list[dict[str, Any]]:
        return [port for port in self.neutron.list_own() if port["device_id"] == self.uuid]

    def attach(self, uuid: str) -> str:
        """Attach a new VIF, as a user does who tries again when the answer does not come."""
        vif = self.neutron.create_vif()

        def ask() -> bool:
            answer = self.bench.user.request("POST", f"/v1/nodes/{uuid}/vifs", {"id": vif})
            return answer.status_code == 204 or "attached already" in answer.text

        self.bench.eventually(ask, f"VIF {vif} is attached")
        return vif

    def deploy(self, uuid: str) -> None:
        self.bench.set_image(uuid)
        self.bench.user.provision(uuid, "active")

    def assert_nothing_left(self) -> None:
        def look() -> bool:
            noted = "neutron_networks" in self.bench.user.node(self.uuid)["driver_internal_info"]
            ports = self.bench.user.get(f"/v1/nodes/{self.uuid}/ports/detail")["ports"]
            return not (self.own_ports() or noted or any(port["internal_info"] for port in ports))

        self.bench.eventually(look, f"nothing of node {self.uuid} is left in Neutron, nor noted")


class WayTest(NeutronTest):
    """What happens when nothing fails."""

    def watch(self) -> Callable[[], list[str]]:
        """Return a function that says on which networks the node had ports of the operator's since now."""
        seen: list[str] = []
        names = {ident: name for name, ident in self.neutron.networks.items()}

        def look(request: networking.Request) -> None:
            if request.method == "POST":
                (port,) = self.own_ports()
                seen.append(names[port["network_id"]])
                self.assertEqual((self.uuid, "other"), (port["binding:host_id"], port["binding:vif_type"]))

        self.gateway.after = look  # type: ignore[assignment]
        return lambda: seen

    def test_a_machine_is_cleaned_deployed_and_given_back(self) -> None:
        uuid = self.enroll()
        seen = self.watch()
        self.bench.make_available(uuid)
        self.assertEqual(["cleaning"], seen())
        self.assert_nothing_left()
        vif = self.attach(uuid)
        self.deploy(uuid)
        self.bench.reach(uuid, "active")
        self.assertEqual(["cleaning", "provisioning"], seen())
        self.assertTrue(self.bench.holds_image(0))
        self.assertEqual([], self.own_ports())
        port = self.neutron.port(vif)
        machine = self.bench.rack.machines[0]
        self.assertEqual((machine["macs"][0], uuid), (port["mac_address"], port["binding:host_id"]))
        self.assertEqual("other", port["binding:vif_type"])
        self.assertEqual([{"id": vif}], self.bench.user.get(f"/v1/nodes/{uuid}/vifs")["vifs"])
        self.bench.user.provision(uuid, "deleted")
        self.bench.reach(uuid, "available")
        self.assertEqual(["cleaning", "provisioning", "cleaning"], seen())
        self.assert_nothing_left()
        port = self.neutron.port(vif)
        self.assertEqual(("", {}), (port["binding:host_id"], port["binding:profile"]))
        self.assertNotEqual(machine["macs"][0], port["mac_address"])

    def test_an_instance_without_a_vif_fails_with_the_reason(self) -> None:
        uuid = self.enroll(1)
        self.bench.make_available(uuid)
        self.deploy(uuid)
        node = self.bench.reach(uuid, "deploy failed")
        self.assertIn("has no VIF", node["last_error"])
        self.bench.user.provision(uuid, "deleted")
        self.bench.reach(uuid, "available")
        self.assert_nothing_left()

    def test_a_port_that_no_switch_has_is_refused_in_neutrons_words(self) -> None:
        uuid = self.enroll()
        for port in self.bench.user.get(f"/v1/nodes/{uuid}/ports")["ports"]:
            link = {"switch_id": "0a:00:00:00:00:99", "switch_info": "elsewhere", "port_id": "1"}
            self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/local_link_connection": link})
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        self.bench.user.provision(uuid, "provide")
        node = self.bench.reach(uuid, "clean failed")
        self.assertIn("elsewhere", node["last_error"])
        self.assert_nothing_left()

    def test_ports_of_a_node_that_is_deleted_go(self) -> None:
        uuid = self.enroll(1)
        self.gateway.after = lambda request: 409 if request.method == "POST" else None
        self.gateway.before = lambda request: 409 if request.method == "DELETE" else None
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        self.bench.user.provision(uuid, "provide")
        self.bench.reach(uuid, "clean failed")
        self.assertEqual(1, len(self.own_ports()))
        self.forget_hooks()
        self.delete(uuid)
        self.bench.eventually(lambda: not self.own_ports(), "the sweep finds the port")


class SwitchTest(NeutronTest):
    """Neutron's mechanism driver moves the port of a real Open vSwitch."""

    def look(self, request: networking.Request) -> None:
        """Note, while a conductor waits for a change, where the machine is: its VLAN, and where its frames arrive."""
        if request.path.split("/")[2].startswith("ports"):
            tag = self.switch.tag(_PORT)
            self.seen.append((request.method, tag, [] if tag is None else self.switch.hears(_PORT)))

    def test_a_machine_is_moved_from_vlan_to_vlan(self) -> None:
        cleaning, provisioning, tenant = (networking.VLANS[name] for name in ("cleaning", "provisioning", "tenant"))
        before = len(self.switch.tags(_PORT))
        self.seen: list[tuple[str, int | None, list[int]]] = []
        uuid = self.enroll(link=_LINK)
        self.gateway.after = self.look  # type: ignore[assignment]
        cleaned = [("POST", cleaning, [cleaning]), ("DELETE", None, [])]
        self.bench.make_available(uuid)
        self.assertEqual(cleaned, self.seen)
        self.attach(uuid)
        self.deploy(uuid)
        self.bench.reach(uuid, "active")
        self.assertEqual((tenant, [tenant]), (self.switch.tag(_PORT), self.switch.hears(_PORT)))
        self.bench.user.provision(uuid, "deleted")
        self.bench.reach(uuid, "available")
        moved = [cleaning, None, provisioning, None, tenant, None, cleaning, None]
        self.assertEqual(moved, self.switch.tags(_PORT)[before:])
        self.assert_nothing_left()


class BaremetalAgentTest(NeutronTest):
    """What the agent of networking-baremetal asks, with the library by which it asks."""

    def test_it_learns_the_physical_networks_of_nodes_and_which_nodes_are_gone(self) -> None:
        uuid = self.enroll()
        for port in self.bench.user.get(f"/v1/nodes/{uuid}/ports")["ports"]:
            self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/physical_network": networking.PHYSICAL_NETWORK})
        baremetal = openstack.connect(
            auth_type="none", baremetal_endpoint_override=self.bench.url, load_yaml_config=False
        ).baremetal
        mappings: dict[str, set[str]] = {}
        for found in baremetal.ports(details=True, conductor_groups=[]):
            mappings.setdefault(found.node_id, set()).add(found.physical_network)
        self.assertEqual({networking.PHYSICAL_NETWORK}, mappings[uuid])
        self.assertEqual(uuid, baremetal.get_node(uuid).id)
        self.delete(uuid)
        self.assertRaises(exceptions.NotFoundException, baremetal.get_node, uuid)


class KillTest(NeutronTest):
    """A conductor is killed at each of its changes in Neutron, before and after Neutron has made it."""

    def play(self, uuid: str) -> None:
        """Have a machine cleaned, deployed and given back, whatever happens to the conductor."""
        self.bench.make_available(uuid)
        self.attach(uuid)
        self.deploy(uuid)
        self.bench.reach(uuid, "active")
        self.bench.user.provision(uuid, "deleted")
        self.bench.reach(uuid, "available")

    def kill_at(self, number: int) -> networking.Hook:
        """Return a hook that kills the process at the change with a number, once, and starts it again."""
        first = len(self.gateway.writes)

        def hook(request: networking.Request) -> int | None:
            if request.number != first + number:
                return None
            self.bench.process.stop(signal.SIGKILL)
            threading.Thread(target=self.bench.process.start).start()
            return 0

        return hook

    def test_no_port_stays_behind(self) -> None:
        before = len(self.gateway.writes)
        uuid = self.enroll()
        self.play(uuid)
        self.delete(uuid)
        count = len(self.gateway.writes) - before
        self.assertGreater(count, 5)
        for number in range(count):
            for moment in ("before", "after"):
                with self.subTest(number=number, moment=moment):
                    self.forget_hooks()
                    uuid = self.enroll()
                    setattr(self.gateway, moment, self.kill_at(number))
                    self.play(uuid)
                    self.assert_nothing_left()
                    self.delete(uuid)


class AwayTest(NeutronTest):
    """Neutron does not answer for a while, or refuses."""

    def test_a_step_is_tried_again(self) -> None:
        uuid = self.enroll()
        failures = iter((503, 0))

        def fail(_request: networking.Request) -> int | None:
            return next(failures, None)

        self.gateway.before = fail
        self.bench.make_available(uuid)
        self.assert_nothing_left()

    def test_a_step_that_is_tried_in_vain_fails_with_the_reason_and_leaves_nothing(self) -> None:
        uuid = self.enroll(1)
        self.gateway.before = lambda request: 503 if request.method == "DELETE" else None
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        self.bench.user.provision(uuid, "provide")
        node = self.bench.reach(uuid, "clean failed")
        self.assertIn("Neutron", node["last_error"])
        self.assertEqual(1, len(self.own_ports()))
        self.forget_hooks()
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        self.bench.user.delete(f"/v1/nodes/{uuid}/maintenance")  # until then the node is left alone
        self.assert_nothing_left()

    def test_a_users_request_says_that_neutron_is_away(self) -> None:
        uuid = self.enroll()
        self.gateway.is_away = True
        answer = self.bench.user.request("POST", f"/v1/nodes/{uuid}/vifs", {"id": self.neutron.create_vif()})
        self.assertEqual(503, answer.status_code, answer.text)
        self.assertIn("cannot be had from Neutron", answer.text)
