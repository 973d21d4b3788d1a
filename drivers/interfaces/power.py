"""The power interface: reads and changes whether a machine is on."""

from typing import ClassVar

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


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

    def start_power_change(self, task: Task, target: str) -> None:
        """Tells the hardware to change; does not wait until it has. Safe to repeat.

        :param target: ``power on``, ``power off``, ``soft power off``, or ``rebooting`` for hardware that has a reset.
        """
        raise NotImplementedError

    def get_supported_power_states(self, task: Task) -> list[str]:
        """Targets that a user may ask for."""
        return ["power on", "power off", "rebooting", "soft power off", "soft rebooting"]
