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
        self._without_stream: dict[str, str] = {}  # by uuid, the version of the row that says so

    def keep_consoles(self) -> None:
        """Open what is enabled and not open. It takes one statement, and one more for each that is tried now."""
        services = self._services
        consoles, before = services.consoles, set(services.consoles.list_nodes())
        found = node_lists.list_with_console(services.db, services.group, services.hardware.drivers, before)
        own = {node.uuid: node for node in found if self._owns(node)}
        for uuid in before - own.keys():
            consoles.stop(uuid, "the node is another conductor's, or is gone; come back", frames.End.STOPS)
        for uuid in before & {uuid for uuid, node in own.items() if not node.console_enabled}:
            consoles.release(uuid)
        known = self._without_stream
        self._without_stream = {uuid: version for uuid, version in known.items() if uuid in own}
        for uuid, node in own.items():
            if node.console_enabled and consoles.is_ready_to_open(uuid) and known.get(uuid) != node.version:
                self._open(node)

    def _open(self, node: models.Node) -> None:
        uuid = node.uuid
        try:
            with task_manager.acquire(self._services, context.current(), uuid, "its console", shared=True) as task:
                make = get_interface(task, ConsoleInterface).find_stream(task)
            self._services.consoles.keep(uuid, make)
        except errors.Invalid as exc:
            LOG.debug("Node %s: its console is not one that is kept open: %s", uuid, exc.message)
            self._without_stream[uuid] = node.version
        except errors.IngotError as exc:
            LOG.warning("Node %s: its console is not opened now: %s", uuid, exc.message)
        except Exception:  # the edge of a timer, and perhaps code of a plug-in's
            LOG.exception("Node %s: opening its console failed unexpectedly", uuid)
