"""What must hold for the operator's priorities of steps before a conductor starts (specifications 002 and 003)."""

from collections import Counter
from collections.abc import Mapping

from oslo_config import cfg

from ingot.common import errors, interfaces
from ingot.drivers.interfaces import base

_OPTIONS = ("clean_step_priority_override", "deploy_step_priority_override", "verify_step_priority_override")

_ERASING = ("erase_devices", "erase_devices_metadata")
"""Clean steps of the agent's deploy interface with an option of their own in [deploy]: ``<step>_priority``."""


def erase_priorities(conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the priorities that the operator gives the agent's steps that erase disks; none for the agent's own."""
    options = {step: conf.deploy[f"{step}_priority"] for step in _ERASING}
    return {step: priority for step, priority in options.items() if priority is not None}


def check_overrides(conf: cfg.ConfigOpts) -> None:
    """Check the options that need no interface to be checked.

    :raises ConfigurationError: a key is no step's, a core deploy step is given a priority other than 0, or two clean
        steps of one type of interface are given the same.
    """
    for name in _OPTIONS:
        for label, priority in conf.conductor[name].items():
            interface_type, _, step = label.partition(".")
            if interface_type not in interfaces.TYPES or not step:
                allowed = f"Name steps as interface.step:priority; interfaces are {', '.join(interfaces.TYPES)}."
                raise _option_error(name, f"{label}:{priority}", allowed)
            if priority and name.startswith("deploy") and interface_type == "deploy" and step in base.CORE_DEPLOY_STEPS:
                allowed = f"{label} is a core step: its priority can only be 0, which disables it."
                raise _option_error(name, f"{label}:{priority}", allowed)
    for interface_type in interfaces.TYPES:
        _check_order(conf, interface_type, f"{interface_type} interfaces", {})


def check_clean_steps(conf: cfg.ConfigOpts, interface: base.BaseInterface) -> None:
    """Check that the clean steps of an interface have an order, as far as that is known before agents offer theirs.

    :raises ConfigurationError: two of them have one priority, after the operator's options and overrides.
    """
    declared = {step["step"]: step["priority"] for step in interface.declared_steps("clean")}
    owner = f"{interface.interface_type} interface {interface.name}"
    _check_order(conf, interface.interface_type, owner, declared)


def _check_order(conf: cfg.ConfigOpts, interface_type: str, owner: str, declared: Mapping[str, float]) -> None:
    overrides = conf.conductor.clean_step_priority_override
    labels = {label: label.partition(".") for label in overrides}
    overridden = {step: overrides[label] for label, (of, _, step) in labels.items() if of == interface_type}
    erasing = erase_priorities(conf) if interface_type == "deploy" else {}
    priorities = {**erasing, **declared, **overridden}
    for priority, count in Counter(priorities.values()).items():
        if priority and count > 1:
            clashing = sorted(step for step, value in priorities.items() if value == priority)
            options = "".join(f", or [deploy] {step}_priority" for step in clashing if step in erasing)
            clash = f"Clean steps {', '.join(clashing)} of {owner} have the same priority {priority}."
            allowed = f"{clash} Give them different ones, or 0, with this option{options}."
            raise _option_error("clean_step_priority_override", overrides, allowed)


def _option_error(option: str, value: object, allowed: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=f"[conductor] {option}", value=value, allowed=allowed)
