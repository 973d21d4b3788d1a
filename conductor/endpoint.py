"""What a conductor serves over RPC: wake-ups, and what only it can answer or do for a user who waits for it."""

import functools
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar, cast

import oslo_messaging

from ingot.common import clock, context, errors, states
from ingot.common import console_frames as frames
from ingot.common.json_types import FlowRequest, Json
from ingot.conductor import preview, validation
from ingot.conductor.allocations import Allocator
from ingot.conductor.console_server import ConsoleServer, Visit
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.steps import checks
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.drivers.interfaces import vendor
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.console import ConsoleInterface
from ingot.drivers.interfaces.management import BootDevice, Indicator, ManagementInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.raid import RAIDInterface
from ingot.drivers.interfaces.sensors import Sensor
from ingot.drivers.interfaces.vendor import VendorCall
from ingot.rpcapi import transport, versions

AnyInterface = TypeVar("AnyInterface", bound=BaseInterface)
Work = Callable[..., object]
Exposed = Callable[..., Json]

_MOST_BREAKERS = 100

_BUSY = states.WORKING | states.WAITING
"""While a flow is under way in these states, how the machine boots is the flow's business (measured contract)."""


def serve(work: Work) -> Exposed:
    """Serve a method over RPC: its caller gets what it returns or raises in an envelope."""

    @functools.wraps(work)
    def method(self: "Endpoint", ctx: Json, *args: object, **about: object) -> Json:
        return transport.answer(ctx, work, self, ctx, *args, **about)

    return cast(Exposed, oslo_messaging.expose(method))


def question(work: Work) -> Exposed:
    """Serve a method that answers a question about a node: it gets a shared task."""

    @functools.wraps(work)
    def run(self: "Endpoint", ctx: Json, node_uuid: str, *args: object, **about: object) -> object:
        return self._run_shared(ctx, node_uuid, lambda task: work(self, task, *args, **about))

    return serve(run)


def action(purpose: str) -> Callable[[Work], Exposed]:
    """Serve a method that does something with a node.

    It gets a task with the lock, after what stands in the node's queue before.
    """

    def decorate(work: Work) -> Exposed:
        @functools.wraps(work)
        def run(self: "Endpoint", ctx: Json, node_uuid: str, *args: object, **about: object) -> object:
            return self._run_in_turn(ctx, node_uuid, purpose, lambda task: work(self, task, *args, **about))

        return serve(run)

    return decorate


class Endpoint:
    """The methods of ``ingot.rpcapi.versions``, which users wait for. Callers give the context as a dictionary, the
    node's uuid where it is about one, and keyword arguments."""

    target = oslo_messaging.Target(version=versions.RPC_VERSION)

    def __init__(
        self, services: Services, queues: NodeQueues, allocator: Allocator, console_server: ConsoleServer
    ) -> None:
        self._services = services
        self._console_server = console_server
        self._queues = queues
        self._allocator = allocator

    def _run_shared(self, ctx: Json, node_uuid: str, work: Callable[[Task], object]) -> object:
        requester = context.RequestContext.from_dict(ctx)
        with task_manager.acquire(self._services, requester, node_uuid, "a question", shared=True) as task:
            return work(task)

    def _run_in_turn(self, ctx: Json, node_uuid: str, purpose: str, work: Callable[[Task], object]) -> object:
        """Run when it is the node's turn; what has not begun by the time at which the caller gives up is never done."""

        def run() -> object:
            transport.refuse_late(ctx, "begin")
            requester = context.RequestContext.from_dict(ctx)
            with task_manager.acquire(self._services, requester, node_uuid, purpose) as task:
                return work(task)

        patience = max(0.0, transport.seconds_left(ctx, "begin"))
        future = self._queues.submit(node_uuid, run)
        futures.wait((future,), patience)
        if future.cancel():
            busy = f"its conductor has been busy with it for {patience:.0f} s, so {purpose} has not begun"
            raise errors.ServiceUnavailable(what=f"Node {node_uuid}", reason=busy)
        return future.result()

    # Wake-ups

    @serve
    def advance(self, _ctx: Json, node_uuid: str, why: str) -> None:
        """Wake up for a node."""
        self._queues.notify(node_uuid, why)

    @serve
    def process_allocation(self, _ctx: Json, allocation_uuid: str) -> None:
        """Wake up for an allocation."""
        self._allocator.notify(allocation_uuid)

    @serve
    def wake_up(self, _ctx: Json, wakeups: list[tuple[str, Json, Json]]) -> None:
        """Receive several wake-ups, each with its method, the context of its own request, and its arguments."""
        for method, ctx, args in wakeups:
            if method in versions.WAKEUPS:
                getattr(self, method)(ctx, **args)

    # What a flow would meet, or do

    @question
    def validate_node(self, task: Task) -> dict[str, validation.Validation]:
        return validation.validate_node(task)

    @question
    def validate_deploy(self, task: Task, request: FlowRequest) -> None:
        validation.validate_deployment(task, request)

    @question
    def validate_flow(self, task: Task, flow: str) -> None:
        validation.validate_flow(task, flow)

    @question
    def get_plan(self, task: Task, flow: str, request: FlowRequest) -> preview.Preview:
        return preview.build_preview(task, flow, request)

    @question
    def get_steps(self, task: Task, kind: str) -> list[validation.ListedStep]:
        return validation.list_steps(task, kind)

    @question
    def get_offered_steps(self, task: Task, kind: str) -> list[validation.ListedOffer]:
        return validation.list_offers(task, kind)

    # How this conductor and machines are now

    @serve
    def get_load(self, _ctx: Json) -> Json:
        """Return how much this conductor has to do, and which BMCs do not answer it."""
        load = self._queues.read_load()
        silent = self._services.circuit_breakers.list_open(_MOST_BREAKERS)
        return {
            "threads_busy": sum(pool.busy for pool in load.pools),
            "threads_most": sum(pool.most for pool in load.pools),
            "pools": [pool._asdict() for pool in load.pools],
            "working": load.nodes,
            "queue": load.jobs,
            "breakers": [{"address": one.bmc, "since": clock.iso(one.since), "reason": one.reason} for one in silent],
        }

    @question
    def get_sensors(self, task: Task) -> list[Sensor]:
        return _get_valid(task, ManagementInterface).get_sensors(task)

    # Console

    @question
    def get_console(self, task: Task) -> Json:
        """Return whether the console is on and, if so, where it is."""
        console = _get_valid(task, ConsoleInterface)
        enabled = task.node.console_enabled
        return {"console_enabled": enabled, "console_info": console.get_console(task) if enabled else None}

    @action("switching the console")
    def set_console(self, task: Task, enabled: bool) -> None:
        """Start or stop the console; one that should run already is started again, as it may have died."""
        console = _get_valid(task, ConsoleInterface)
        with self._services.notifier.action(task.context, "console_set", task.describe):
            (console.start_console if enabled else console.stop_console)(task)
            task.set(console_enabled=enabled)

    @question
    def open_console(self, task: Task, mode: str, take_over: bool, user: str) -> frames.Place:
        """Return where the serial console of a node is served; its BMC is called when someone comes there.

        :param mode: read or write.
        :param take_over: whether to type in place of another user, or of another client of the BMC.
        :raises ConsoleTaken: another user types.
        """
        make = _get_valid(task, ConsoleInterface).find_stream(task)
        visit = Visit(task.node.uuid, make, user, mode == "write", take_over, task.context.request_id)
        return self._console_server.admit(visit)

    @question
    def get_console_log(self, task: Task) -> str | None:
        """Return what the machine has said since it was switched on; None: its console is not open."""
        _get_valid(task, ConsoleInterface).find_stream(task)
        said = self._services.consoles.read(task.node.uuid)
        return None if said is None else said.decode("utf-8", "replace")

    # How the machine boots

    @question
    def get_boot_device(self, task: Task) -> BootDevice:
        return _get_management(task).get_boot_device(task)

    @question
    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return _get_management(task).get_supported_boot_devices(task)

    @action("setting the boot device")
    def set_boot_device(self, task: Task, device: str, persistent: bool) -> None:
        _get_valid(task, ManagementInterface).set_boot_device(task, device, persistent)

    @action("setting the boot mode")
    def set_boot_mode(self, task: Task, mode: str) -> None:
        """
        :raises NodeBusy: a flow is under way.
        """
        _check_no_flow(task, "given another boot mode")
        _get_valid(task, ManagementInterface).set_boot_mode(task, mode)
        task.set(boot_mode=mode)

    @action("setting secure boot")
    def set_secure_boot(self, task: Task, enabled: bool) -> None:
        """
        :raises NodeBusy: a flow is under way.
        """
        _check_no_flow(task, "given another secure boot state")
        _get_valid(task, ManagementInterface).set_secure_boot(task, enabled)
        task.set(secure_boot=enabled)

    @action("injecting an NMI")
    def inject_nmi(self, task: Task) -> None:
        _get_valid(task, ManagementInterface).inject_nmi(task)

    # Indicators

    @question
    def get_indicators(self, task: Task) -> list[Json]:
        """Return the lights of the machine: component, name, readonly, states."""
        return [one._asdict() for one in _get_valid(task, ManagementInterface).get_supported_indicators(task)]

    @question
    def get_indicator_state(self, task: Task, component: str, name: str) -> str:
        """
        :raises NotFound: the machine has no such light.
        """
        management = _get_valid(task, ManagementInterface)
        return management.get_indicator_state(task, _find_indicator(task, component, name))

    @action("setting an indicator")
    def set_indicator_state(self, task: Task, component: str, name: str, state: str) -> None:
        """
        :raises NotFound: the machine has no such light.
        :raises Invalid: it can only be read, or does not know the state.
        """
        management = _get_valid(task, ManagementInterface)
        indicator = _find_indicator(task, component, name)
        if indicator.readonly:
            raise errors.Invalid(f"Indicator {name}@{component} of node {task.node.uuid} can be read only, not set.")
        if state not in indicator.states:
            raise errors.Invalid(field="state", value=state, allowed=f"It can be: {', '.join(indicator.states)}.")
        management.set_indicator_state(task, indicator, state)

    # Virtual media

    @question
    def get_virtual_media(self, task: Task) -> list[Json]:
        return _get_valid(task, ManagementInterface).get_virtual_media(task)

    @action("attaching virtual media")
    def attach_virtual_media(self, task: Task, device_type: str, image_url: str, source: str | None) -> None:
        _get_valid(task, ManagementInterface).attach_virtual_media(task, device_type, image_url, source)

    @action("detaching virtual media")
    def detach_virtual_media(self, task: Task, device_types: list[str]) -> None:
        _get_valid(task, ManagementInterface).detach_virtual_media(task, device_types)

    # Networks of the user

    @question
    def list_vifs(self, task: Task) -> list[Json]:
        return _get_network(task).list_vifs(task)

    @action("attaching a VIF")
    def attach_vif(self, task: Task, vif: Json) -> None:
        _get_valid(task, NetworkInterface).attach_vif(task, vif)

    @action("detaching a VIF")
    def detach_vif(self, task: Task, vif_id: str) -> None:
        _get_network(task).detach_vif(task, vif_id)

    @action("changing a port")
    def change_port(self, task: Task, uuid: str, address: str | None, client_id: str | None) -> None:
        _get_network(task).change_port(task, uuid, address, client_id)

    # What only a vendor's machines can do

    @question
    def get_node_methods(self, task: Task) -> dict[str, dict[str, object]]:
        """Return the methods of the node's vendor interface that users may call by name."""
        return vendor.describe_methods(checks.require_interface(task, "vendor"), vendor.OF_NODE)

    @serve
    def call_node_method(
        self, ctx: Json, node_uuid: str, vendor_method: str, http_method: str, arguments: Json
    ) -> object:
        """Call a method of the node's vendor interface: ``{"tells": whether it has a result, "result": it}``.

        An unknown one is refused even if the node is locked.
        """
        call = VendorCall(vendor_method, http_method, arguments)

        def find(task: Task) -> vendor.VendorMethod:
            return vendor.find_method(checks.require_interface(task, "vendor"), vendor.OF_NODE, task, call)

        found = cast(vendor.VendorMethod, self._run_shared(ctx, node_uuid, find))

        def run(task: Task) -> Json:
            result = vendor.call_method(checks.require_interface(task, "vendor"), vendor.OF_NODE, task, call)
            return {"tells": found.returns_result, "result": result if found.returns_result else None}

        if found.exclusive:
            return self._run_in_turn(ctx, node_uuid, f"vendor method {vendor_method}"[:255], run)
        return self._run_shared(ctx, node_uuid, run)

    @serve
    def get_driver_methods(self, _ctx: Json, driver: str) -> dict[str, dict[str, object]]:
        """Return the driver methods of its vendor interface."""
        return vendor.describe_methods(self._services.hardware.driver_interface(driver, "vendor"), vendor.OF_DRIVER)

    @serve
    def call_driver_method(
        self, ctx: Json, driver: str, vendor_method: str, http_method: str, arguments: Json
    ) -> object:
        """Call one of them."""
        interface = self._services.hardware.driver_interface(driver, "vendor")
        requester = context.RequestContext.from_dict(ctx)
        call = VendorCall(vendor_method, http_method, arguments)
        return vendor.call_method(interface, vendor.OF_DRIVER, requester, call)

    # What drivers say of themselves

    @serve
    def get_logical_disk_properties(self, _ctx: Json, driver: str) -> dict[str, str]:
        """Return descriptions by key of what a RAID interface takes about a logical disk.

        It is that of a classic driver, or the default one of a hardware type.
        """
        raid = cast(RAIDInterface, self._services.hardware.driver_interface(driver, "raid"))
        return raid.get_logical_disk_properties()

    @serve
    def get_driver_properties(self, _ctx: Json, hardware_type: str) -> dict[str, str]:
        """Return the properties that the default interfaces of a hardware type, or those of a classic driver, read."""
        return self._services.hardware.properties(hardware_type)


def _get_valid(task: Task, contract: type[AnyInterface]) -> AnyInterface:
    """Return one of the node's interfaces, with everything it needs.

    :raises Invalid: it has none on this conductor, or the node lacks something that it needs.
    """
    interface = cast(AnyInterface, checks.require_interface(task, contract.interface_type))
    interface.validate(task)
    return interface


def _get_network(task: Task) -> NetworkInterface:
    """Return the node's network interface, for what can be done where nothing could be connected: a VIF can leave."""
    return cast(NetworkInterface, checks.require_interface(task, "network"))


def _get_management(task: Task) -> ManagementInterface:
    return cast(ManagementInterface, checks.require_interface(task, "management"))


def _check_no_flow(task: Task, done: str) -> None:
    state = task.node.provision_state
    if state in _BUSY:
        allowed = ", ".join(sorted(states.ALL - _BUSY))
        raise errors.NodeBusy(node=task.node.uuid, done=done, state=state, allowed=allowed)


def _find_indicator(task: Task, component: str, name: str) -> Indicator:
    known = _get_valid(task, ManagementInterface).get_supported_indicators(task)
    for indicator in known:
        if (indicator.component, indicator.name) == (component, name):
            return indicator
    names = ", ".join(f"{one.name}@{one.component}" for one in known) or "none"
    raise errors.NotFound(f"Node {task.node.uuid} has no indicator {name[:80]}@{component[:80]}; it has: {names}.")
