"""The nodes of this conductor that use an interface: what the interface's periodic methods are given."""

import contextlib
from collections.abc import Callable
from concurrent import futures

from oslo_log import log

from ingot.common import context, errors, interfaces
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.db import maintenance, models, node_lists
from ingot.drivers.interfaces.base import BaseInterface

LOG = log.getLogger(__name__)

_COLUMNS = (
    *("uuid", "name", "driver", "conductor_group", "power_state", "provision_state", "reservation"),
    *maintenance.FLAG,
)


class Fleet:
    """See ``ingot.drivers.interfaces.periodic.Fleet``.

    :param owns: whether a node is this conductor's.
    """

    def __init__(
        self,
        services: Services,
        queues: NodeQueues,
        owns: Callable[[models.Node], bool],
        interface: BaseInterface,
    ) -> None:
        self.conf = services.conf
        self.context = context.admin()
        self._services = services
        self._queues = queues
        self._owns = owns
        self._interface = interface

    def nodes(self) -> list[models.Node]:
        hardware, interface = self._services.hardware, self._interface
        columns = (*_COLUMNS, interfaces.FIELD[interface.interface_type])
        candidates = node_lists.list_of_drivers(self._services.db, hardware.drivers_using(interface), columns)
        mine = [node for node in candidates if hardware.has_interface(node, interface) and self._owns(node)]
        return [node for node in mine if not maintenance.pauses_sync(node)]

    def acquire_shared(self, node: models.Node) -> contextlib.AbstractContextManager[Task]:
        return task_manager.acquire(self._services, self.context, node.uuid, self._interface.name, shared=True)

    def change(self, node: models.Node, purpose: str, work: Callable[[Task], None]) -> None:
        def run() -> None:
            with task_manager.acquire(self._services, self.context, node.uuid, purpose) as task:
                work(task)

        def log_end(future: "futures.Future[None]") -> None:
            error = future.exception()
            if isinstance(error, errors.IngotError):
                LOG.warning("Node %s: %s was not done: %s", node.uuid, purpose, error.message)
            elif error is not None:
                LOG.error("Node %s: %s failed unexpectedly", node.uuid, purpose, exc_info=error)

        self._queues.submit(node.uuid, run).add_done_callback(log_end)
