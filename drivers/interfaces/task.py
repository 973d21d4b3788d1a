"""What an interface's method is given: the task, seen from the driver's side. The conductor implements it."""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from oslo_config import cfg

from ingot.common import context
from ingot.common.json_types import Json
from ingot.common.steps import PlannedStep
from ingot.db import models
from ingot.drivers.interfaces.circuit_breakers import CircuitBreakers
from ingot.drivers.interfaces.consoles import Consoles

Link = Any
"""An interface, of the base class of its type, or None if it is not enabled anymore.

The type cannot be said here, because those classes are built on tasks and tasks on this: ``base.get_interface`` does.
"""


@dataclasses.dataclass(slots=True)
class BareDriver:
    """Links to interface singletons, as the node's fields say (specification 004). One is made for each task.

    :ivar name: what the node's field ``driver`` says: a hardware type or a classic driver.
    :ivar all_interfaces: the interfaces that are there, in the order of ``ingot.common.interfaces.TYPES``.
    """

    name: str
    bios: Link = None
    boot: Link = None
    console: Link = None
    deploy: Link = None
    firmware: Link = None
    inspect: Link = None
    management: Link = None
    network: Link = None
    power: Link = None
    raid: Link = None
    rescue: Link = None
    storage: Link = None
    vendor: Link = None
    all_interfaces: tuple[Link, ...] = ()


class Task(Protocol):
    """One piece of work on one node.

    :ivar node: the node as it is known now, see ``ingot.db.models.Node``; :meth:`set` keeps it up to date.
    :ivar memory: what the current step remembers between its calls; saved with every answer.
    :ivar is_first_call: whether nothing of the current step can have been done yet, by this conductor or another.
    :ivar shared: whether the task has no lock and must not write.
    :ivar circuit_breakers: where calls to BMCs note whether they were answered.
    :ivar consoles: the serial consoles that this conductor has open.
    """

    conf: cfg.ConfigOpts
    context: context.RequestContext
    node: models.Node
    memory: Json
    is_first_call: bool
    shared: bool
    circuit_breakers: CircuitBreakers
    consoles: Consoles

    @property
    def driver(self) -> BareDriver:
        """Links to the node's interfaces; one that is not enabled anymore is None.

        :raises LockLost: as :meth:`confirm_lock`: this is the way to the machine.
        """

    def confirm_lock(self) -> None:
        """Make sure of the lock, before a command to the machine that does not come by way of :attr:`driver`.

        It costs nothing, unless this conductor has sent no heartbeat for so long that another may have taken the node
        over. Then it reads who has the lock.

        :raises LockLost: another has it.
        :raises ServiceUnavailable: the database has been away for minutes.
        """

    @property
    def ports(self) -> list[models.Port]:
        """The node's ports, read at first use."""

    @property
    def portgroups(self) -> list[models.Portgroup]:
        """The node's portgroups, read at first use."""

    @property
    def traits(self) -> list[str]:
        """The node's traits, read at first use."""

    @property
    def volume_connectors(self) -> list[models.VolumeConnector]:
        """How the machine reaches volumes, read at first use."""

    @property
    def volume_targets(self) -> list[models.VolumeTarget]:
        """The machine's volumes by boot index, read at first use."""

    @property
    def step(self) -> PlannedStep | None:
        """The step that runs, None outside of steps."""

    def set(self, **columns: object) -> None:
        """Change columns of the node.

        They are visible in ``node`` at once, and are written, fenced, by the end of the step at the latest.

        :raises LockLost: at the write, when the lock was taken over.
        """

    def save(self) -> None:
        """Write now what :meth:`set` has collected: before something irreversible that depends on it."""

    def keep_port_notes(self, key: str, notes: Mapping[str, str]) -> None:
        """Write now what is noted under a key in ``internal_info`` of the node's ports and portgroups, and in the node.

        :param notes: the values by uuid; the other ports and portgroups lose the note.
        :raises LockLost: the lock was taken over; nothing was written.
        """

    def alone(self, what: str, patience: float) -> contextlib.AbstractContextManager[None]:
        """Wait until no other task of any conductor does the same thing: ``with task.alone("switch leaf", 60): ...``.

        :param what: is done alone, beside the node, which the lock already keeps to this task.
        :param patience: seconds for which others are waited for.
        :raises TimeoutError: others did it all the time.
        """

    def remove_volume_targets(self) -> None:
        """Delete the node's volume targets now: they are those of an instance that is no more.

        :raises LockLost: the lock was taken over; nothing was deleted.
        """

    def keep_volume_properties(self, properties: Mapping[str, Json]) -> None:
        """Write now how volumes are reached, as Cinder's connections say it.

        :param properties: of the node's volume targets, by uuid.
        :raises LockLost: the lock was taken over; nothing was written.
        """

    def keep_bios_settings(self, read: Iterable[Mapping[str, object]]) -> None:
        """Write now what the BIOS settings of the machine are, and forget those that are not among them.

        :param read: columns of ``ingot.db.models.BiosSetting``, with name and value at least.
        :raises LockLost: the lock was taken over.
        """

    def keep_firmware_components(self, read: Iterable[Mapping[str, object]]) -> None:
        """Do the same as :meth:`keep_bios_settings` for firmware.

        :param read: columns of ``ingot.db.models.FirmwareComponent``, with component and initial_version at least; the
            initial_version that is known already stays.
        """

    def keep_inventory(self, found: Json, plugin_data: Json) -> None:
        """Write now what the machine is made of, in the form of agents; :meth:`inventory` has it afterwards.

        :param plugin_data: what was found besides, for hooks and rules.
        :raises LockLost: the lock was taken over.
        """

    def inventory(self) -> models.NodeInventory | None:
        """Return what was found in the machine since its inspection began; None: nothing yet, or none runs."""

    def configdrive(self) -> str | None:
        """Return the deployment's config drive: base64 of gzip; None if there is none."""
