"""What must hold for the operator's priorities of steps before a conductor starts (specifications 002 and 003)."""

from collections import Counter

from oslo_config import cfg

from ingot.common import errors, interfaces
from ingot.drivers import steps
from ingot.drivers.interfaces.base import BaseInterface

_OPTIONS = ("clean_step_priority_override", "deploy_step_priority_override")


def check_overrides(conf: cfg.ConfigOpts) -> None:
    """Checks the options that need no interface to be checked.

    :raises ConfigurationError: a key is no step's, or a core deploy step is given a priority other than 0.
    """
    for name in _OPTIONS:
        for label, priority in conf.conductor[name].items():
            kind, dot, step = label.partition(".")
            if kind not in interfaces.KINDS or not dot or not step:
                raise _refused(
                    name,
                    f"{label}:{priority}",
                    f"Name steps as interface.step:priority; interfaces are {', '.join(interfaces.KINDS)}.",
                )
            if priority and name.startswith("deploy") and kind == "deploy" and step in steps.CORE_DEPLOY_STEPS:
                raise _refused(
                    name,
                    f"{label}:{priority}",
                    f"{label} is a core step: its priority can only be 0, which disables it.",
                )


def check_clean_steps(conf: cfg.ConfigOpts, interface: BaseInterface) -> None:
    """Checks that the clean steps of an interface have an order.

    :raises ConfigurationError: two of them have one priority, after the operator's overrides.
    """
    overrides = conf.conductor.clean_step_priority_override
    declared = interface.declared_steps("clean")
    priorities = {one["step"]: overrides.get(f"{interface.kind}.{one['step']}", one["priority"]) for one in declared}
    for priority, count in Counter(priorities.values()).items():
        if priority and count > 1:
            clashing = sorted(step for step, value in priorities.items() if value == priority)
            raise _refused(
                "clean_step_priority_override",
                overrides,
                f"Clean steps {', '.join(clashing)} of {interface.kind} interface {interface.name} have the same "
                f"priority {priority}. Give them different ones, or 0.",
            )


def _refused(option: str, value: object, allowed: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=f"[conductor] {option}", value=value, allowed=allowed)
