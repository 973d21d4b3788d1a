"""What a conductor serves over RPC: wake-ups, and questions that only it can answer."""

from collections.abc import Callable
from concurrent import futures
from typing import Any

import oslo_messaging

from ingot.common import context, errors
from ingot.conductor import hardware, preview, validation
from ingot.conductor.allocations import Allocator
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.drivers.interfaces import vendor
from ingot.drivers.interfaces.vendor import VendorCall
from ingot.rpcapi import transport, versions


def _management(task: Task) -> Any:
    return validation.interface(task, "management")


def _asked(work: Callable[..., Any]) -> Any:
    """A method that answers a question about a node; ``work`` is a function of :mod:`ingot.conductor.hardware`."""

    def method(self: "Endpoint", ctx: dict[str, Any], node_uuid: str, **about: Any) -> dict[str, Any]:
        return self._shared(ctx, node_uuid, lambda task: work(task, **about))

    return _exposed(method, work)


def _done(work: Callable[..., Any], purpose: str) -> Any:
    """A method that does something with a node under its lock, after whatever stands in its queue before."""

    def method(self: "Endpoint", ctx: dict[str, Any], node_uuid: str, **about: Any) -> dict[str, Any]:
        return self._exclusive(ctx, node_uuid, purpose, lambda task: work(task, **about))

    return _exposed(method, work)


def _exposed(method: Callable[..., Any], work: Callable[..., Any]) -> Any:
    method.__qualname__ = f"Endpoint.{work.__name__}"
    method.__doc__ = f"See ``hardware.{work.__name__}``."
    return oslo_messaging.expose(method)


class Endpoint:
    """The methods of ``ingot.rpcapi.versions``. Each takes the context as a dictionary and keyword arguments, and
    returns an envelope (``transport.answer``)."""

    target = oslo_messaging.Target(version=versions.RPC_VERSION)

    def __init__(self, services: Services, queues: NodeQueues, allocator: Allocator) -> None:
        self._services = services
        self._queues = queues
        self._allocator = allocator

    @oslo_messaging.expose
    def advance(self, ctx: dict[str, Any], node_uuid: str, why: str) -> dict[str, Any]:
        """Wake up for a node."""
        return transport.answer(ctx, self._queues.notify, node_uuid, why)

    @oslo_messaging.expose
    def process_allocation(self, ctx: dict[str, Any], allocation_uuid: str) -> dict[str, Any]:
        """Wake up for an allocation."""
        return transport.answer(ctx, self._allocator.notify, allocation_uuid)

    @oslo_messaging.expose
    def validate_node(self, ctx: dict[str, Any], node_uuid: str) -> dict[str, Any]:
        """See ``validation.node``."""
        return self._shared(ctx, node_uuid, validation.node)

    @oslo_messaging.expose
    def validate_deploy(self, ctx: dict[str, Any], node_uuid: str, request: dict[str, Any]) -> dict[str, Any]:
        """See ``validation.deployment``."""
        return self._shared(ctx, node_uuid, lambda task: validation.deployment(task, request))

    @oslo_messaging.expose
    def validate_flow(self, ctx: dict[str, Any], node_uuid: str, flow: str) -> dict[str, Any]:
        """See ``validation.interfaces_of``."""
        return self._shared(ctx, node_uuid, lambda task: validation.interfaces_of(task, flow))

    @oslo_messaging.expose
    def get_plan(self, ctx: dict[str, Any], node_uuid: str, flow: str, request: dict[str, Any]) -> dict[str, Any]:
        """See ``preview.build_preview``."""
        return self._shared(ctx, node_uuid, lambda task: preview.build_preview(task, flow, request))

    @oslo_messaging.expose
    def get_steps(self, ctx: dict[str, Any], node_uuid: str, kind: str) -> dict[str, Any]:
        """See ``validation.steps``."""
        return self._shared(ctx, node_uuid, lambda task: validation.steps(task, kind))

    @oslo_messaging.expose
    def get_boot_device(self, ctx: dict[str, Any], node_uuid: str) -> dict[str, Any]:
        return self._shared(ctx, node_uuid, lambda task: _management(task).get_boot_device(task))

    @oslo_messaging.expose
    def get_supported_boot_devices(self, ctx: dict[str, Any], node_uuid: str) -> dict[str, Any]:
        return self._shared(ctx, node_uuid, lambda task: _management(task).get_supported_boot_devices(task))

    @oslo_messaging.expose
    def set_boot_device(self, ctx: dict[str, Any], node_uuid: str, device: str, persistent: bool) -> dict[str, Any]:
        """Sets the boot device under the node's lock, after whatever stands in the node's queue before it."""

        def work(task: Task) -> None:
            _management(task).validate(task)
            _management(task).set_boot_device(task, device, persistent)

        return self._exclusive(ctx, node_uuid, "setting the boot device", work)

    get_console = _asked(hardware.get_console)
    set_console = _done(hardware.set_console, "switching the console")
    set_boot_mode = _done(hardware.set_boot_mode, "setting the boot mode")
    set_secure_boot = _done(hardware.set_secure_boot, "setting secure boot")
    inject_nmi = _done(hardware.inject_nmi, "injecting an NMI")
    get_indicators = _asked(hardware.get_indicators)
    get_indicator_state = _asked(hardware.get_indicator_state)
    set_indicator_state = _done(hardware.set_indicator_state, "setting an indicator")
    get_virtual_media = _asked(hardware.get_virtual_media)
    attach_virtual_media = _done(hardware.attach_virtual_media, "attaching virtual media")
    detach_virtual_media = _done(hardware.detach_virtual_media, "detaching virtual media")
    list_vifs = _asked(hardware.list_vifs)
    attach_vif = _done(hardware.attach_vif, "attaching a VIF")
    detach_vif = _done(hardware.detach_vif, "detaching a VIF")
    get_node_methods = _asked(hardware.node_methods)

    @oslo_messaging.expose
    def call_node_method(
        self, ctx: dict[str, Any], node_uuid: str, vendor_method: str, http_method: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Calls a method of the node's vendor interface: ``{"tells": whether it has a result, "result": it}``.

        One that nobody has is refused even if the node is locked.
        """
        asked = VendorCall(vendor_method, http_method, arguments)
        looked = self._shared(ctx, node_uuid, lambda task: hardware.node_method(task, asked)._asdict())
        if "error" in looked:
            return looked
        tells, exclusive = looked["result"]["tells"], looked["result"]["exclusive"]

        def work(task: Task) -> dict[str, Any]:
            result = hardware.call_node_method(task, asked)
            return {"tells": tells, "result": result if tells else None}

        if exclusive:
            return self._exclusive(ctx, node_uuid, f"vendor method {vendor_method}"[:255], work)
        return self._shared(ctx, node_uuid, work)

    @oslo_messaging.expose
    def get_logical_disk_properties(self, ctx: dict[str, Any], driver: str) -> dict[str, Any]:
        """What can be said of a logical disk to the default RAID interface of a hardware type, or to that of a classic
        driver: descriptions by key."""

        def run() -> dict[str, str]:
            raid: Any = self._services.hardware.driver_interface(driver, "raid")
            if not raid.supported:
                raise raid.not_supported("logical disks")
            properties: dict[str, str] = raid.get_logical_disk_properties()
            return properties

        return transport.answer(ctx, run)

    @oslo_messaging.expose
    def get_driver_properties(self, ctx: dict[str, Any], hardware_type: str) -> dict[str, Any]:
        """Properties that the default interfaces of a hardware type, or those of a classic driver, read from
        driver_info."""
        return transport.answer(ctx, self._services.hardware.properties, hardware_type)

    @oslo_messaging.expose
    def get_driver_methods(self, ctx: dict[str, Any], driver: str) -> dict[str, Any]:
        """The driver methods of its vendor interface."""

        def run() -> Any:
            return vendor.describe_driver_methods(self._services.hardware.driver_interface(driver, "vendor"))

        return transport.answer(ctx, run)

    @oslo_messaging.expose
    def call_driver_method(
        self, ctx: dict[str, Any], driver: str, vendor_method: str, http_method: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Calls one of them."""

        def run() -> Any:
            interface = self._services.hardware.driver_interface(driver, "vendor")
            asked_by = context.RequestContext.from_dict(ctx)
            return vendor.call_driver_method(interface, asked_by, VendorCall(vendor_method, http_method, arguments))

        return transport.answer(ctx, run)

    def _shared(self, ctx: dict[str, Any], node_uuid: str, work: Callable[[Task], Any]) -> dict[str, Any]:
        def run() -> Any:
            asked_by = context.RequestContext.from_dict(ctx)
            with task_manager.acquire(self._services, asked_by, node_uuid, "a question", shared=True) as task:
                return work(task)

        return transport.answer(ctx, run)

    def _exclusive(
        self, ctx: dict[str, Any], node_uuid: str, purpose: str, work: Callable[[Task], Any]
    ) -> dict[str, Any]:
        def run() -> Any:
            asked_by = context.RequestContext.from_dict(ctx)
            with task_manager.acquire(self._services, asked_by, node_uuid, purpose) as task:
                return work(task)

        return transport.answer(ctx, lambda: self._in_turn(ctx, node_uuid, purpose, run))

    def _in_turn(self, ctx: dict[str, Any], node_uuid: str, purpose: str, run: Callable[[], Any]) -> Any:
        """What has not begun by the time at which whoever asked gives up is not done behind their back later."""

        def in_time() -> Any:
            transport.refuse_late(ctx, "begin")
            return run()

        patience = max(0.0, transport.seconds_left(ctx, "begin"))
        future = self._queues.submit(node_uuid, in_time)
        futures.wait((future,), patience)
        if future.cancel():
            busy = f"its conductor has been busy with it for {patience:.0f} s, so {purpose} has not begun"
            raise errors.ServiceUnavailable(what=f"Node {node_uuid}", reason=busy)
        return future.result()
