"""Machines go from network to network of a real Neutron; whatever dies or is away on the way, no port stays behind."""

import signal
import threading
import time
import unittest
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import openstack
import testtools
from openstack import exceptions

from tests import patience
from tests.functional.deployment import lab
from tests.gate import cloud, networking, switches

_PORT = "machine0"
_FAKE_LINK = {"switch_id": networking.SWITCH_MAC, "switch_info": networking.SWITCH, "port_id": "port-0"}
_LINK = {"switch_id": switches.MAC, "switch_info": switches.NAME, "port_id": _PORT}
_MACHINES = 2
_TIMEOUT_S = patience.seconds(8)
_QUICK = {"port_sweep_interval": 5, "request_timeout": int(_TIMEOUT_S)}

_FIRST_PAUSE_S = 2
"""After which a step is tried again."""

_SLOW_S = 2
"""How long a slow Keystone does not answer."""

_CHANGES = (
    *(("provide", "POST"), ("provide", "DELETE"), ("attach", "PUT")),
    *(("active", "POST"), ("active", "DELETE"), ("active, left", "PUT")),
    *(("detach", "PUT"), ("attach again", "PUT")),
    *(("deleted", "PUT"), ("deleted", "POST"), ("deleted", "DELETE")),
)
"""Of a machine that is cleaned, deployed and given back: at least when, and by which method, Neutron is changed."""

_FAILURES = (
    ("provide", "available", "clean failed", (("enter cleaning", ["POST"], 0), ("leave cleaning", ["DELETE"], 1))),
    (
        "active",
        "active",
        "deploy failed",
        (
            ("leave the user's", ["PUT"], 0),
            ("enter provisioning", ["POST"], 0),
            ("leave provisioning", ["DELETE"], 1),
            ("enter the user's", ["DELETE", "PUT"], 0),
        ),
    ),
    ("deleted", "available", "error", (("leave the user's", ["PUT"], 0),)),
)
"""Verbs, the state that each leads to, and that in which it fails; what fails, at the last of which changes, and how
many ports there are then on networks of the operator's."""


def setUpModule() -> None:
    """Start what all tests share."""
    enter, shared = unittest.enterModuleContext, NeutronTest
    shared.keystone = enter(cloud.Keystone())
    shared.switch = enter(switches.OpenVSwitch((_PORT,), list(networking.VLANS.values())))
    shared.neutron = enter(networking.Neutron(shared.keystone, shared.switch.options()))
    shared.gateway = enter(networking.Gateway(shared.neutron.url))
    options = shared.neutron.options(shared.gateway.url)
    options["neutron"] |= _QUICK
    shared.bench = enter(lab.Lab(machines=_MACHINES, options=options))


class NeutronTest(testtools.TestCase):
    """The tests share a cloud and a rack; none of them leaves a node or a port."""

    keystone: ClassVar[cloud.Keystone]
    switch: ClassVar[switches.OpenVSwitch]
    neutron: ClassVar[networking.Neutron]
    gateway: ClassVar[networking.Gateway]
    bench: ClassVar[lab.Lab]

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.end_faults)
        self.uuid = ""

    def end_faults(self) -> None:
        """Have Neutron and Keystone work as usual from now on."""
        if not self.keystone.process.running:
            self.keystone.restart()
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

    def detach(self, uuid: str, vif: str) -> None:
        """Detach a VIF as :meth:`attach` attaches one."""

        def ask() -> bool:
            answer = self.bench.user.request("DELETE", f"/v1/nodes/{uuid}/vifs/{vif}")
            return answer.status_code == 204 or "not attached" in answer.text

        self.bench.eventually(ask, f"VIF {vif} is detached")

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
        self.end_faults()
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


class FaultTest(NeutronTest):
    """Every change in Neutron, all along a machine's way, meets a fault once: its user gets there nevertheless."""

    def live(self, moment: str, fault: Callable[[], int | None], every: bool) -> list[tuple[str, str]]:
        """Have a machine cleaned, deployed and given back.

        :param moment: of the gateway, at which a change meets the fault.
        :param every: every change meets it. Otherwise it is the first of each kind: a step is tried three times.
        :returns: what has met it: when, and by which method.
        """
        uuid, met, stage = self.enroll(), list[tuple[str, str, bytes]](), "provide"

        def hook(request: networking.Request) -> int | None:
            step = f"{stage}, left" if (stage, "DELETE", b"") in met else stage
            change = stage if request.method == "DELETE" else step, request.method, request.body if every else b""
            if change in met:
                return None
            met.append(change)
            return fault()

        setattr(self.gateway, moment, hook)
        self.bench.make_available(uuid)
        stage = "attach"
        vif = self.attach(uuid)
        stage = "active"
        self.deploy(uuid)
        self.bench.reach(uuid, "active")
        self.assertEqual(uuid, self.neutron.port(vif)["binding:host_id"])
        stage = "detach"
        self.detach(uuid, vif)
        self.assertEqual("", self.neutron.port(vif)["binding:host_id"])
        stage = "attach again"
        vif = self.attach(uuid)
        self.assertEqual(uuid, self.neutron.port(vif)["binding:host_id"])
        stage = "deleted"
        self.bench.user.provision(uuid, "deleted")
        self.bench.reach(uuid, "available")
        self.assert_nothing_left()
        self.end_faults()
        self.delete(uuid)
        return [(stage, method) for stage, method, _body in met]

    def kill(self) -> int:
        self.bench.process.stop(signal.SIGKILL)
        threading.Thread(target=self.bench.process.start).start()
        return 0

    def wait(self) -> None:
        """Let the conductor give up, and try again."""
        time.sleep(_TIMEOUT_S + _FIRST_PAUSE_S + 2)

    def log_in_slowly(self) -> int:
        """Have the conductor log in again, at a Keystone that is slow."""
        self.keystone.process.send(signal.SIGSTOP)
        threading.Timer(_SLOW_S, self.keystone.process.send, (signal.SIGCONT,)).start()
        return 401

    def test_the_user_gets_there_and_nothing_stays_behind(self) -> None:
        for moment, fault, every in (
            ("before", lambda: 503, False),
            ("before", self.wait, False),  # Neutron gets it when it may have been asked for again
            ("after", self.wait, False),
            ("before", self.kill, True),
            ("after", self.kill, True),
            ("before", self.log_in_slowly, False),
        ):
            with self.subTest(moment=moment, fault=fault):
                met = self.live(moment, fault, every)
                self.assertEqual([], [one for one in _CHANGES if one not in met])


class AwayTest(NeutronTest):
    """Neutron or Keystone is away while a step is tried: it fails with the reason, and can be asked for again."""

    def lose_neutron(self) -> int:
        return 0

    def lose_keystone(self) -> int:
        """Have the conductor log in again, where nothing answers."""
        if self.keystone.process.running:
            self.keystone.process.stop(signal.SIGKILL)
        return 401

    def fail(self, fault: Callable[[], int], *methods: str) -> networking.Hook:
        """Return a hook by which changes by the last of some methods meet a fault, once there were those before it."""
        methods_left = list(methods)

        def hook(request: networking.Request) -> int | None:
            if request.method != methods_left[0]:
                return None
            if len(methods_left) > 1:
                del methods_left[0]
                return None
            return fault()

        return hook

    def recover(self, uuid: str, state: str) -> None:
        """Do what a user has to before a verb can be asked for again."""
        if state == "clean failed":
            self.bench.user.provision(uuid, "manage")
            self.bench.reach(uuid, "manageable")
            self.bench.user.delete(f"/v1/nodes/{uuid}/maintenance")  # until then the node is left alone
            self.bench.eventually(lambda: not self.own_ports(), "the sweep has deleted what is left")
            self.bench.eventually(lambda: self.bench.user.node(uuid)["reservation"] is None, "it is done")

    def test_a_step_fails_with_the_reason_and_leaves_nothing(self) -> None:
        uuid = self.enroll(1)
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        for verb, state, end, failures in _FAILURES:
            for failed, methods, count in failures:
                for fault, said in ((self.lose_neutron, "Neutron"), (self.lose_keystone, self.keystone.url)):
                    with self.subTest(failed=failed, fault=fault):
                        self.gateway.before = self.fail(fault, *methods)
                        self.bench.user.provision(uuid, verb)
                        node = self.bench.reach(uuid, end)
                        self.assertIn(said, node["last_error"])
                        self.assertEqual(count, len(self.own_ports()))
                        self.end_faults()
                        self.recover(uuid, end)
            self.bench.user.provision(uuid, verb)
            self.bench.reach(uuid, state)
            if state == "available" and verb == "provide":
                self.assert_nothing_left()
                self.attach(uuid)
                self.bench.set_image(uuid)
        self.assert_nothing_left()

    def test_a_users_request_says_that_neutron_is_away(self) -> None:
        uuid = self.enroll()
        vif = self.neutron.create_vif()
        for method, path, body in (("POST", "vifs", {"id": vif}), ("DELETE", f"vifs/{vif}", None)):
            with self.subTest(method=method):
                before = self.bench.user.get(f"/v1/nodes/{uuid}/vifs")
                self.gateway.is_away = True
                answer = self.bench.user.request(method, f"/v1/nodes/{uuid}/{path}", body)
                self.assertEqual(503, answer.status_code, answer.text)
                self.assertIn("cannot be had from Neutron", answer.text)
                self.assertEqual(before, self.bench.user.get(f"/v1/nodes/{uuid}/vifs"))
                self.assertIsNone(self.bench.user.node(uuid)["reservation"])
                self.gateway.is_away = False
                self.assertEqual(204, self.bench.user.request(method, f"/v1/nodes/{uuid}/{path}", body).status_code)
