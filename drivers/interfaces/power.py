"""The power interface: reads and changes whether a machine is on."""

from concurrent import futures
from typing import ClassVar, NamedTuple

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class Reading(NamedTuple):
    """What a machine was found to be in.

    :param power_state: ``power on`` or ``power off``.
    :param health: ``OK``, ``Warning`` or ``Critical``; None: the hardware does not tell.
    :param findings: what is wrong with it, in an operator's words.
    """

    power_state: str
    health: str | None = None
    findings: tuple[str, ...] = ()


class PowerInterface(BaseInterface):
    """:cvar sees_changes: whether :meth:`get_power_state` sees that a machine switched itself off."""

    kind = "power"
    sees_changes: ClassVar[bool] = True

    def get_power_state(self, task: Task) -> str:
        """Reads the power state from the hardware: ``power on`` or ``power off``.

        :raises HardwareUnreachable: the BMC does not answer; the message has its address.
        :raises HardwareError: it refuses.
        """
        raise NotImplementedError

    def start_reading(self, task: Task) -> "futures.Future[Reading] | None":
        """Begins to read, for hardware of which many can be read at a time without a thread for each.

        :returns: at once; the future has the reading, or what :meth:`get_power_state` raises, within a limited time.
            None: this interface does not know how, and :meth:`get_power_state` is called in a thread instead.
        """
        return None

    def bmc(self, task: Task) -> str:
        """Names the machine's BMC: machines that share one have the same name. By default each has one of its own."""
        return str(task.node.uuid)

    def start_power_change(self, task: Task, target: str) -> None:
        """Tells the hardware to change; does not wait until it has. Safe to repeat.

        :param target: ``power on``, ``power off``, ``soft power off``, or ``rebooting`` for hardware that has a reset.
        """
        raise NotImplementedError

    def get_supported_power_states(self, task: Task) -> list[str]:
        """Targets that a user may ask for."""
        return ["power on", "power off", "rebooting", "soft power off", "soft rebooting"]
