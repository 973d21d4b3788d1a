"""What an interface's method is given: the task, seen from the driver's side. The conductor implements it."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from oslo_config import cfg

from ingot.common import context
from ingot.db import records
from ingot.drivers import driver as bare_driver
from ingot.drivers.silences import Silences


class Task(Protocol):
    """One piece of work on one node.

    :ivar node: the node as it is known now, see ``ingot.db.models.Node``; :meth:`set` keeps it up to date.
    :ivar memory: what the current step remembers between its calls; saved with every answer.
    :ivar shared: whether the task has no lock and must not write.
    :ivar silences: where calls to BMCs note whether they were answered.
    """

    conf: cfg.ConfigOpts
    context: context.RequestContext
    node: records.Record
    memory: dict[str, Any]
    shared: bool
    silences: Silences

    @property
    def driver(self) -> bare_driver.BareDriver:
        """Links to the node's interfaces; one that is not enabled any more is None.

        :raises LockLost: as :meth:`confirm_lock`: this is the way to the machine.
        """

    def confirm_lock(self) -> None:
        """To be called before a command to the machine that does not come by way of :attr:`driver`. It costs nothing,
        unless this conductor has given no sign of life for so long, since the lock was taken, that another may have
        taken the node over: then it looks.

        :raises LockLost: another has it.
        :raises ServiceUnavailable: the database has been away for minutes.
        """

    @property
    def ports(self) -> list[records.Record]:
        """The node's ports, read at first use."""

    @property
    def traits(self) -> list[str]:
        """The node's traits, read at first use."""

    @property
    def volume_connectors(self) -> list[records.Record]:
        """How the machine reaches volumes, read at first use."""

    @property
    def volume_targets(self) -> list[records.Record]:
        """The machine's volumes by boot index, read at first use."""

    @property
    def step(self) -> dict[str, Any]:
        """The step that runs, empty outside of steps: interface, step, args, priority, origin ..."""

    def set(self, **columns: Any) -> None:
        """Changes columns of the node. They are visible in ``node`` at once and are written, fenced, with the next
        write of the task, which is at the end of the step at the latest.

        :raises LockLost: at the write, when the lock was taken over.
        """

    def save(self) -> None:
        """Writes now what :meth:`set` has collected: before something irreversible that depends on it."""

    def keep_bios_settings(self, read: Iterable[Mapping[str, Any]]) -> None:
        """Writes now what the BIOS settings of the machine are: columns of ``ingot.db.models.BiosSetting``, with name
        and value at least. Settings that are not among them are forgotten.

        :raises LockLost: the lock was taken over.
        """

    def keep_firmware_components(self, read: Iterable[Mapping[str, Any]]) -> None:
        """As :meth:`keep_bios_settings`, of ``ingot.db.models.FirmwareComponent``, with component and
        initial_version at least; the initial_version that is known already stays."""

    def inventory(self) -> records.Record | None:
        """What was found in the machine since its inspection began: ``inventory``, ``plugin_data``; None: nothing yet,
        or no inspection runs."""

    def configdrive(self) -> str | None:
        """The deployment's config drive: base64 of gzip; None if there is none."""
