"""Keeps consoles open that are enabled, and gives back those of nodes that are another conductor's now."""

from collections.abc import Callable

from oslo_log import log

from ingot.common import console_frames as frames
from ingot.common import context, errors
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services
from ingot.db import models, node_lists
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.console import ConsoleInterface

LOG = log.getLogger(__name__)


class ConsoleKeeper:
    """
    :param owns: whether a node is this conductor's.
    """

    def __init__(self, services: Services, owns: Callable[[models.Node], bool]) -> None:
        self._services = services
        self._owns = owns

    def keep_consoles(self) -> None:
        """Open what is enabled and not open. It takes one statement, and one more for each of these."""
        services = self._services
        consoles, before = services.consoles, set(services.consoles.list_nodes())
        found = node_lists.list_with_console(services.db, services.group, services.hardware.drivers, before)
        own = {node.uuid: node.console_enabled for node in found if self._owns(node)}
        for uuid in before - own.keys():
            consoles.stop(uuid, "the node is another conductor's, or is gone; come back", frames.End.STOPS)
        for uuid in before & {uuid for uuid, is_enabled in own.items() if not is_enabled}:
            consoles.release(uuid)
        for uuid in [uuid for uuid, is_enabled in own.items() if is_enabled and not consoles.is_running(uuid)]:
            self._open(uuid)

    def _open(self, uuid: str) -> None:
        try:
            with task_manager.acquire(self._services, context.current(), uuid, "its console", shared=True) as task:
                make = get_interface(task, ConsoleInterface).find_stream(task)
        except errors.IngotError as exc:
            LOG.debug("Node %s: its console is not one that is kept open: %s", uuid, exc.message)
        else:
            self._services.consoles.keep(uuid, make)
