"""What must hold for the operator's priorities of steps before a conductor starts (specifications 002 and 003)."""

from collections import Counter
from collections.abc import Mapping

from oslo_config import cfg

from ingot.common import errors, interfaces
from ingot.drivers import steps
from ingot.drivers.interfaces.base import BaseInterface

_OPTIONS = ("clean_step_priority_override", "deploy_step_priority_override")

_ERASING = ("erase_devices", "erase_devices_metadata")
"""Clean steps of the agent's deploy interface with an option of their own in [deploy]: ``<step>_priority``."""


def of_erasing(conf: cfg.ConfigOpts) -> dict[str, int]:
    """The priorities that the operator gives the agent's ways of erasing disks, by step; without those that are the
    agent's to say."""
    options = {step: conf.deploy[f"{step}_priority"] for step in _ERASING}
    return {step: priority for step, priority in options.items() if priority is not None}


def check_overrides(conf: cfg.ConfigOpts) -> None:
    """Checks the options that need no interface to be checked.

    :raises ConfigurationError: a key is no step's, a core deploy step is given a priority other than 0, or two clean
        steps of one kind of interface are given the same.
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
    for kind in interfaces.KINDS:
        _check_order(conf, kind, f"{kind} interfaces", {})


def check_clean_steps(conf: cfg.ConfigOpts, interface: BaseInterface) -> None:
    """Checks that the clean steps of an interface have an order, as far as that is known before agents offer theirs.

    :raises ConfigurationError: two of them have one priority, after the operator's options and overrides.
    """
    declared = {step["step"]: step["priority"] for step in interface.declared_steps("clean")}
    _check_order(conf, interface.kind, f"{interface.kind} interface {interface.name}", declared)


def _check_order(conf: cfg.ConfigOpts, kind: str, whose: str, declared: Mapping[str, int]) -> None:
    overrides = conf.conductor.clean_step_priority_override
    given = {label.partition(".")[2]: value for label, value in overrides.items() if label.partition(".")[0] == kind}
    erasing = of_erasing(conf) if kind == "deploy" else {}
    priorities = {**erasing, **declared, **given}
    for priority, count in Counter(priorities.values()).items():
        if priority and count > 1:
            clashing = sorted(step for step, value in priorities.items() if value == priority)
            options = "".join(f", or [deploy] {step}_priority" for step in clashing if step in erasing)
            raise _refused(
                "clean_step_priority_override",
                overrides,
                f"Clean steps {', '.join(clashing)} of {whose} have the same priority {priority}. Give them different "
                f"ones, or 0, with this option{options}.",
            )


def _refused(option: str, value: object, allowed: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=f"[conductor] {option}", value=value, allowed=allowed)
