"""Reboots within a step: the machine is brought back to where the flow has it, in the agent, running or off."""

from ingot.common import states
from ingot.drivers.agent import booting, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.task import Task


def reboot(task: Task) -> results.Result:
    """Restart the machine, as a phase; if the agent ran, another one does afterwards.

    That the machine is off is saved before it starts. Otherwise, when a conductor dies as it has started the machine,
    the next one would cut the power of firmware that is at work.
    """
    if "in_agent" not in task.memory:
        task.memory["in_agent"] = session.is_alive(task)
    off, *on = booting.REBOOT if task.memory["in_agent"] else (power_control.power_off, power_control.power_on)
    return results.run_phases(task, off, results.save_progress, *on)


def note_power(task: Task, memory: dict[str, object]) -> None:
    """Note whether the machine is on, before the reboot. Safe to repeat."""
    if "was_off" not in memory:
        memory["was_off"] = power_control.read_power_state(task) == states.POWER_OFF


def restore_power(task: Task, memory: dict[str, object]) -> results.Result:
    """Switch a machine off again that was off before the reboot."""
    return power_control.power_off(task) if memory.get("was_off") else results.DONE
