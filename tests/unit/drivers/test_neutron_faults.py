"""Each operation of the network interfaces meets faults of Neutron at each of its requests; what is left is counted."""

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from ingot.common import errors
from tests.unit.drivers import fakes
from tests.unit.drivers.test_neutron import NeutronCase


class _Operation(NamedTuple):
    """
    :param name: of the method of the network interface.
    :param prepares: methods that are called before, without a fault.
    :param arguments: of a call, given the VIF.
    """

    name: str
    prepares: tuple[str, ...] = ()
    arguments: Callable[[str], tuple[Any, ...]] = lambda _vif: ()


_PURPOSES = ("cleaning", "provisioning", "rescuing", "inspection", "servicing")
_FAULTS: tuple[tuple[str, int], ...] = (
    ("refused as not authenticated", 401),
    ("refused", 409),
    ("fails", 500),
    ("is overloaded", 503),
    ("does it and never answers", 0),
    ("is a proxy's page", 200),
)

OPERATIONS = (
    *(_Operation(f"add_{name}_network") for name in _PURPOSES),
    *(_Operation(f"remove_{name}_network", (f"add_{name}_network",)) for name in _PURPOSES),
    _Operation("configure_tenant_networks", ("attach",)),
    _Operation("configure_tenant_networks", ("attach", "add_provisioning_network")),
    _Operation("unconfigure_tenant_networks", ("attach", "configure_tenant_networks")),
    _Operation("attach_vif", (), lambda vif: ({"id": vif},)),
    _Operation("detach_vif", ("attach",), lambda vif: (vif,)),
    _Operation("detach_vif", ("attach", "configure_tenant_networks"), lambda vif: (vif,)),
)


class FaultsTest(NeutronCase):
    """A fault is an error that says so, or is not noticed; the operation can be repeated, and leaves nothing behind."""

    purposes: ClassVar[tuple[str, ...]] = _PURPOSES

    def test_each_operation_of_flat_at_each_request(self) -> None:
        self.play_all("flat")

    def test_each_operation_of_neutron_at_each_request(self) -> None:
        self.play_all("neutron")

    def play_all(self, interface: str) -> None:
        """Play each operation with faults at each of its requests: at the next request the next ones, all in turn."""
        faults = itertools.cycle(_FAULTS)
        for operation in OPERATIONS:
            count = self.play(interface, operation, None, 0)
            for number in range(count):
                for what, status in itertools.islice(faults, 2):
                    with self.subTest(operation=operation, number=number, what=what):
                        self.play(interface, operation, number, status)

    def setUp(self) -> None:
        super().setUp()
        self.first = self.task()

    def renew(self, interface: str) -> fakes.MemoryTask:
        """Return a task on a new node; conductors keep their connection to Neutron."""
        task = fakes.MemoryTask(self.first.conf, fakes.node(network_interface=interface), self.first.hardware)
        task.ports = [copy.copy(port) for port in self.first.ports]  # without notes: those are set anew
        return task

    def play(self, interface: str, operation: _Operation, number: int | None, status: int) -> int:
        self.service.rows["ports"].clear()
        self.service.refusals.clear()
        task, vif = self.renew(interface), self.vif()
        for name in operation.prepares:
            self.attach(task, vif) if name == "attach" else self.call(task, name)
        arguments = operation.arguments(vif)
        first = len(self.service.asked)
        if number is not None:
            self.service.faults = {first + number: status}
        try:
            self.call(task, operation.name, *arguments)
        except errors.IngotError as exc:
            self.check_message(exc, status)
            if isinstance(exc, errors.NetworkError) and operation.name.startswith("add_") and interface == "neutron":
                self.assertEqual([], list(self.own_ports()), "a step that has failed leaves no port")
            self.repeat(task, operation, arguments)
        count = len(self.service.asked) - first
        self.leave(task, vif)
        return count

    def call(self, task: fakes.MemoryTask, name: str, *arguments: Any) -> None:
        if interface_needs_vif(task, name) and not task.driver.network.list_vifs(task):
            self.attach(task, self.vif())
        getattr(task.driver.network, name)(task, *arguments)

    def check_message(self, exc: errors.IngotError, status: int) -> None:
        is_failure = status in (0, 200, 500, 503)
        self.assertEqual(is_failure, isinstance(exc, errors.NetworkServiceUnavailable), exc.message)
        expected = {401: "[neutron]", 0: "", 200: "what answers is no Neutron"}
        self.assertIn(expected.get(status, "the fake says no"), exc.message)

    def repeat(self, task: fakes.MemoryTask, operation: _Operation, arguments: tuple[Any, ...]) -> None:
        """Do it once more, as a step does that is tried again, or a user."""
        self.service.faults = {}
        try:
            self.call(task, operation.name, *arguments)
        except (errors.Conflict, errors.Invalid) as exc:  # it was done, and its answer was lost
            self.assertIn("attached", exc.message)

    def leave(self, task: fakes.MemoryTask, vif: str) -> None:
        """Give the machine up, and look what is left."""
        self.service.faults = {}
        network = task.driver.network
        for name in _PURPOSES:
            getattr(network, f"remove_{name}_network")(task)
        network.unconfigure_tenant_networks(task)
        for attached in network.list_vifs(task):
            network.detach_vif(task, attached["id"])
        self.assertEqual([], list(self.own_ports()))
        self.assertEqual(({}, [{}, {}]), (task.node.driver_internal_info, [one.internal_info for one in task.ports]))
        port = self.port(vif)
        self.assertEqual(("", {}), (port["binding:host_id"], port["binding:profile"]))

    def own_ports(self) -> Iterator[dict[str, Any]]:
        return (port for port in self.service.ports if port["device_owner"] == "baremetal:none")


def interface_needs_vif(task: fakes.MemoryTask, name: str) -> bool:
    """Return whether an operation is on the user's ports, which flat does more of."""
    of_user = ("provisioning", "rescuing", "servicing")
    return task.node.network_interface == "flat" and name in [f"add_{one}_network" for one in of_user]
