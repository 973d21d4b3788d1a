"""What a conductor serves over RPC: wake-ups, and questions that only it can answer."""

from collections.abc import Callable
from concurrent import futures
from typing import TypeVar, cast

import oslo_messaging

from ingot.common import context, errors
from ingot.common.json_types import FlowRequest, Json
from ingot.conductor import hardware, preview, validation
from ingot.conductor.allocations import Allocator
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.drivers.interfaces import vendor
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.raid import RAIDInterface
from ingot.drivers.interfaces.vendor import VendorCall
from ingot.rpcapi import transport, versions

Exposed = Callable[..., Json]
Method = TypeVar("Method", bound=Exposed)


def expose(method: Method) -> Method:
    """Serve a method over RPC."""
    return cast(Method, oslo_messaging.expose(method))


def _expose_question(work: Callable[..., object]) -> Exposed:
    """Return a method that answers a question about a node.

    :param work: a function of :mod:`ingot.conductor.hardware`.
    """

    def method(self: "Endpoint", ctx: Json, node_uuid: str, **about: object) -> Json:
        return self._run_shared(ctx, node_uuid, lambda task: work(task, **about))

    return _expose(method, work)


def _expose_action(work: Callable[..., object], purpose: str) -> Exposed:
    """Return a method that does something with a node under its lock, after whatever stands in its queue before."""

    def method(self: "Endpoint", ctx: Json, node_uuid: str, **about: object) -> Json:
        return self._run_exclusive(ctx, node_uuid, purpose, lambda task: work(task, **about))

    return _expose(method, work)


def _expose(method: Exposed, work: Callable[..., object]) -> Exposed:
    method.__qualname__ = f"Endpoint.{work.__name__}"
    method.__doc__ = f"See ``hardware.{work.__name__}``."
    return expose(method)


class Endpoint:
    """The methods of ``ingot.rpcapi.versions``. Each takes the context as a dictionary and keyword arguments, and
    returns an envelope (``transport.answer``)."""

    target = oslo_messaging.Target(version=versions.RPC_VERSION)

    def __init__(self, services: Services, queues: NodeQueues, allocator: Allocator) -> None:
        self._services = services
        self._queues = queues
        self._allocator = allocator

    @expose
    def advance(self, ctx: Json, node_uuid: str, why: str) -> Json:
        """Wake up for a node."""
        return transport.answer(ctx, self._queues.notify, node_uuid, why)

    @expose
    def process_allocation(self, ctx: Json, allocation_uuid: str) -> Json:
        """Wake up for an allocation."""
        return transport.answer(ctx, self._allocator.notify, allocation_uuid)

    @expose
    def validate_node(self, ctx: Json, node_uuid: str) -> Json:
        """See ``validation.validate_node``."""
        return self._run_shared(ctx, node_uuid, validation.validate_node)

    @expose
    def validate_deploy(self, ctx: Json, node_uuid: str, request: FlowRequest) -> Json:
        """See ``validation.validate_deployment``."""
        return self._run_shared(ctx, node_uuid, lambda task: validation.validate_deployment(task, request))

    @expose
    def validate_flow(self, ctx: Json, node_uuid: str, flow: str) -> Json:
        """See ``validation.validate_flow``."""
        return self._run_shared(ctx, node_uuid, lambda task: validation.validate_flow(task, flow))

    @expose
    def get_plan(self, ctx: Json, node_uuid: str, flow: str, request: FlowRequest) -> Json:
        """See ``preview.build_preview``."""
        return self._run_shared(ctx, node_uuid, lambda task: preview.build_preview(task, flow, request))

    @expose
    def get_steps(self, ctx: Json, node_uuid: str, kind: str) -> Json:
        """See ``validation.list_steps``."""
        return self._run_shared(ctx, node_uuid, lambda task: validation.list_steps(task, kind))

    get_boot_device = _expose_question(hardware.get_boot_device)
    get_supported_boot_devices = _expose_question(hardware.get_supported_boot_devices)
    set_boot_device = _expose_action(hardware.set_boot_device, "setting the boot device")
    get_console = _expose_question(hardware.get_console)
    set_console = _expose_action(hardware.set_console, "switching the console")
    set_boot_mode = _expose_action(hardware.set_boot_mode, "setting the boot mode")
    set_secure_boot = _expose_action(hardware.set_secure_boot, "setting secure boot")
    inject_nmi = _expose_action(hardware.inject_nmi, "injecting an NMI")
    get_indicators = _expose_question(hardware.get_indicators)
    get_indicator_state = _expose_question(hardware.get_indicator_state)
    set_indicator_state = _expose_action(hardware.set_indicator_state, "setting an indicator")
    get_virtual_media = _expose_question(hardware.get_virtual_media)
    attach_virtual_media = _expose_action(hardware.attach_virtual_media, "attaching virtual media")
    detach_virtual_media = _expose_action(hardware.detach_virtual_media, "detaching virtual media")
    list_vifs = _expose_question(hardware.list_vifs)
    attach_vif = _expose_action(hardware.attach_vif, "attaching a VIF")
    detach_vif = _expose_action(hardware.detach_vif, "detaching a VIF")
    get_node_methods = _expose_question(hardware.list_node_methods)

    @expose
    def call_node_method(
        self, ctx: Json, node_uuid: str, vendor_method: str, http_method: str, arguments: Json
    ) -> Json:
        """Call a method of the node's vendor interface: ``{"tells": whether it has a result, "result": it}``.

        An unknown one is refused even if the node is locked.
        """

        def get_vendor(task: Task) -> BaseInterface:
            return validation.require_interface(task, "vendor")

        call = VendorCall(vendor_method, http_method, arguments)
        found = self._run_shared(
            ctx, node_uuid, lambda task: vendor.find_node_method(get_vendor(task), task, call)._asdict()
        )
        if "error" in found:
            return found
        tells = found["result"]["returns_result"]

        def work(task: Task) -> Json:
            result = vendor.call_node_method(get_vendor(task), task, call)
            return {"tells": tells, "result": result if tells else None}

        if found["result"]["exclusive"]:
            return self._run_exclusive(ctx, node_uuid, f"vendor method {vendor_method}"[:255], work)
        return self._run_shared(ctx, node_uuid, work)

    @expose
    def get_logical_disk_properties(self, ctx: Json, driver: str) -> Json:
        """Return what can be said of a logical disk to the RAID interface of a classic driver, or the default one of a
        hardware type: descriptions by key."""

        def run() -> dict[str, str]:
            raid = cast(RAIDInterface, self._services.hardware.driver_interface(driver, "raid"))
            if not raid.supported:
                raise raid.not_supported("logical disks")
            return raid.get_logical_disk_properties()

        return transport.answer(ctx, run)

    @expose
    def get_driver_properties(self, ctx: Json, hardware_type: str) -> Json:
        """Return the properties that the default interfaces of a hardware type, or those of a classic driver, read from
        driver_info."""
        return transport.answer(ctx, self._services.hardware.properties, hardware_type)

    @expose
    def get_driver_methods(self, ctx: Json, driver: str) -> Json:
        """Return the driver methods of its vendor interface."""

        def run() -> object:
            return vendor.describe_driver_methods(self._services.hardware.driver_interface(driver, "vendor"))

        return transport.answer(ctx, run)

    @expose
    def call_driver_method(self, ctx: Json, driver: str, vendor_method: str, http_method: str, arguments: Json) -> Json:
        """Call one of them."""

        def run() -> object:
            interface = self._services.hardware.driver_interface(driver, "vendor")
            requester = context.RequestContext.from_dict(ctx)
            return vendor.call_driver_method(interface, requester, VendorCall(vendor_method, http_method, arguments))

        return transport.answer(ctx, run)

    def _run_shared(self, ctx: Json, node_uuid: str, work: Callable[[Task], object]) -> Json:
        def run() -> object:
            requester = context.RequestContext.from_dict(ctx)
            with task_manager.acquire(self._services, requester, node_uuid, "a question", shared=True) as task:
                return work(task)

        return transport.answer(ctx, run)

    def _run_exclusive(self, ctx: Json, node_uuid: str, purpose: str, work: Callable[[Task], object]) -> Json:
        def run() -> object:
            requester = context.RequestContext.from_dict(ctx)
            with task_manager.acquire(self._services, requester, node_uuid, purpose) as task:
                return work(task)

        return transport.answer(ctx, lambda: self._run_in_turn(ctx, node_uuid, purpose, run))

    def _run_in_turn(self, ctx: Json, node_uuid: str, purpose: str, run: Callable[[], object]) -> object:
        """Run when it is the node's turn; what has not begun by the time at which the caller gives up is never done."""

        def in_time() -> object:
            transport.refuse_late(ctx, "begin")
            return run()

        patience = max(0.0, transport.seconds_left(ctx, "begin"))
        future = self._queues.submit(node_uuid, in_time)
        futures.wait((future,), patience)
        if future.cancel():
            busy = f"its conductor has been busy with it for {patience:.0f} s, so {purpose} has not begun"
            raise errors.ServiceUnavailable(what=f"Node {node_uuid}", reason=busy)
        return future.result()
