"""The power interface: reads and changes whether a machine is on."""

from concurrent import futures
from typing import ClassVar, NamedTuple

from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task


class Reading(NamedTuple):
    """The state that a machine was found in.

    :param power_state: ``power on`` or ``power off``; None: it is not known.
    :param health: ``OK``, ``Warning`` or ``Critical``; None: the hardware does not report it.
    :param findings: what is wrong with it, in an operator's words.
    :param boot_mode: ``uefi`` or ``bios``; None: this reading does not tell.
    """

    power_state: str | None
    health: str | None = None
    findings: tuple[str, ...] = ()
    boot_mode: str | None = None


class PowerInterface(BaseInterface):
    """
    :cvar sees_changes: whether :meth:`get_power_state` sees that a machine switched itself off.
    :cvar switches: whether it switches machines on and off. One that does not leaves that to an operator: its machines
        stay on, and are restarted by :meth:`restart`.
    """

    interface_type = "power"
    sees_changes: ClassVar[bool] = True
    switches: ClassVar[bool] = True

    def get_power_state(self, task: Task) -> str | None:
        """Read the power state from the hardware: ``power on`` or ``power off``; None where it cannot be known.

        :raises HardwareUnreachable: the BMC does not answer; the message has its address.
        :raises HardwareError: it refuses.
        """
        raise NotImplementedError

    def start_reading(self, task: Task) -> "futures.Future[Reading] | None":
        """Begin to read, for hardware of which many can be read at a time without a thread for each.

        :returns: at once; the future has the reading, or what :meth:`get_power_state` raises, within a limited time.
            None: this interface cannot, and :meth:`get_power_state` is called in a thread instead.
        """
        return None

    def bmc(self, task: Task) -> str:
        """Return a name of the machine's BMC, which machines that share one have in common; by default, its own."""
        return task.node.uuid

    def start_power_change(self, task: Task, target: str) -> None:
        """Send the command to the hardware; do not wait until it is done. Safe to repeat.

        :param target: ``power on``, ``power off``, ``soft power off``, or ``rebooting`` for hardware that has a reset.
        """
        raise NotImplementedError

    def restart(self, task: Task) -> results.Result:
        """Restart a machine that cannot be switched off; to be called again until it answers done, as a phase is.

        :raises HardwareError: that cannot be done now.
        """
        raise self.not_supported("restart")

    def get_supported_power_states(self, task: Task) -> list[str]:
        """Return the targets that a user may request."""
        return ["power on", "power off", "rebooting", "soft power off", "soft rebooting"]
