"""Which steps a flow gets for a node, with which priority and arguments, and in which order.

Precedence of what is asked for: request over template over configuration over code (specification 003). Order: highest
priority first; equal priorities by interface, :data:`ingot.common.interfaces.TIE_ORDER` (specification 002).
"""

from collections.abc import Iterable
from typing import Any

from ingot.common import errors, interfaces
from ingot.conductor.steps.flow import Step
from ingot.conductor.task_manager import Task
from ingot.db import task_reads
from ingot.drivers import steps as declared

Key = tuple[str, str]

_OVERRIDES = {"clean": "clean_step_priority_override", "deploy": "deploy_step_priority_override"}
"""Options of [conductor] with the operator's priorities; steps of other kinds run only when they are asked for."""


def key(step: Step) -> Key:
    return step["interface"], step["step"]


def label(step: Step) -> str:
    """How messages and options name a step: ``raid.apply_configuration``."""
    return f"{step['interface']}.{step['step']}"


def ordered(steps: Iterable[Step]) -> list[Step]:
    """Steps in the order in which they run; those with priority 0 are left out."""
    wanted = (step for step in steps if step["priority"] > 0)
    return sorted(wanted, key=lambda step: (-step["priority"], interfaces.TIE_ORDER[step["interface"]]))


def chosen_by_default(task: Task, kind: str, in_band: list[Step] | None) -> list[Step]:
    """The enabled steps of driver and agent, in order: what runs when nobody asks for anything else."""
    return ordered(_plain(step) for step in available(task, kind, in_band or []).values())


def automated_clean(task: Task, in_band: list[Step] | None) -> list[Step]:
    return chosen_by_default(task, "clean", in_band)


def verify(task: Task, in_band: list[Step] | None) -> list[Step]:
    return chosen_by_default(task, "verify", in_band)


def manual_clean(task: Task, in_band: list[Step] | None) -> list[Step]:
    """The steps of the request, in its order.

    :raises Invalid: a step needs the agent, and the request says that none is to be booted.
    """
    offered = available(task, "clean", in_band or [])
    steps = [
        _requested(offered, {"priority": 0, **wanted}, "request", "clean")
        for wanted in task.node.request.get("clean_steps", [])
    ]
    if task.node.request.get("disable_ramdisk"):
        for step in steps:
            if step["requires_ramdisk"]:
                raise errors.Invalid(
                    field="disable_ramdisk",
                    value=True,
                    allowed=f"Step {label(step)} runs with the agent's ramdisk only: leave out one of the two.",
                )
    return steps


def deploy(task: Task, in_band: list[Step] | None) -> list[Step]:
    """The driver's and the agent's steps, with those of templates and request over them.

    :param in_band: None while the agent's steps are not known: what nobody offers yet may still be one of them.
    """
    offered = available(task, "deploy", in_band or [])
    chosen: list[Step] = []
    overridden: set[Key] = set()
    for wanted, origin in deploy_requests(task):
        _check_core(wanted)
        overridden.add(key(wanted))
        if in_band is not None or key(wanted) in offered:
            chosen.append(_check_place(_requested(offered, wanted, origin, "deploy")))
    chosen += [_check_place(_plain(step)) for step in offered.values() if key(step) not in overridden]
    return ordered(chosen)


def deploy_requests(task: Task) -> list[tuple[Step, str]]:
    """(step, origin) of everything that templates and the request ask for; the request's wins over a template's."""
    requested = [(step, "request") for step in task.node.request.get("deploy_steps") or []]
    taken = {key(step) for step, _origin in requested}
    traits = task.node.instance_info.get("traits") or []
    templates = task_reads.template_steps(task.db, traits) if traits else []
    from_templates = [
        (
            {"interface": row.interface, "step": row.step, "args": row.args, "priority": row.priority},
            f"template {row.template}",
        )
        for row in templates
        if (row.interface, row.step) not in taken
    ]
    return [*requested, *from_templates]


def available(task: Task, kind: str, in_band: Iterable[Step]) -> dict[Key, Step]:
    """Every step of a kind that driver or agent offer for the node, with the priorities that configuration gives.

    A step that an interface declares wins over one of the same name that the agent offers: the interface's calls the
    agent's and knows more about it.
    """
    overrides = task.conf.conductor[_OVERRIDES[kind]] if kind in _OVERRIDES else {}
    found: dict[Key, Step] = {}
    for interface in task.driver.all_interfaces():
        for step in getattr(interface, f"get_{kind}_steps")(task):
            found[key(step)] = {**step, "origin": "driver", "in_band": False}
    for step in in_band:
        found.setdefault(key(step), {"idempotent": kind == "clean", **step, "origin": "agent", "in_band": True})
    for step in found.values():
        if label(step) in overrides:
            _check_core({**step, "priority": overrides[label(step)]})
            step["priority"] = overrides[label(step)]
    return found


def _plain(step: Step) -> Step:
    """A step as the plan keeps it, run with its own priority and without arguments."""
    return {
        "interface": step["interface"],
        "step": step["step"],
        "priority": step["priority"],
        "args": dict(step.get("args") or {}),
        "origin": step["origin"],
        "abortable": bool(step.get("abortable")),
        "idempotent": bool(step.get("idempotent")),
        "in_band": step["in_band"],
        "requires_ramdisk": bool(step.get("requires_ramdisk", step["in_band"])),
        "reboot_requested": bool(step.get("reboot_requested")),
    }


def _requested(offered: dict[Key, Step], wanted: Step, origin: str, kind: str) -> Step:
    """A step that somebody asked for, checked against what is offered.

    :raises Invalid: nobody offers it, or its arguments are wrong; the message names step and argument.
    """
    if key(wanted) not in offered:
        known = ", ".join(sorted(label(step) for step in offered.values() if step["interface"] == wanted["interface"]))
        raise errors.Invalid(
            field=f"{kind} step of {origin}",
            value=label(wanted),
            allowed=f"Interface {wanted['interface']} of this node offers: {known or 'no such steps'}.",
        )
    step = offered[key(wanted)]
    args = wanted.get("args") or {}
    _check_args(step, args)
    return {**_plain(step), "args": args, "priority": wanted["priority"], "origin": origin}


def _check_args(step: Step, args: dict[str, Any]) -> None:
    argsinfo = step.get("argsinfo")
    if argsinfo is None and step["in_band"]:
        return  # agents need not describe arguments; they check them themselves
    known = argsinfo or {}
    for name in args:
        if name not in known:
            raise errors.Invalid(
                field=f"argument of step {label(step)}",
                value=name,
                allowed=f"It takes: {', '.join(sorted(known)) or 'no arguments'}.",
            )
    missing = sorted(name for name, about in known.items() if about.get("required") and name not in args)
    if missing:
        raise errors.MissingParameter(where=f"arguments of step {label(step)}", names=", ".join(missing))


def _check_core(wanted: Step) -> None:
    is_core = wanted["interface"] == "deploy" and wanted["step"] in declared.CORE_DEPLOY_STEPS
    if is_core and wanted["priority"] != 0:
        raise errors.Invalid(
            field=f"priority of core step {label(wanted)}",
            value=wanted["priority"],
            allowed="A core step's priority can only be overridden by 0, which disables it.",
        )


def _check_place(step: Step) -> Step:
    """In-band deploy steps have a range of their own (specification 000).

    :raises Invalid: the step stands outside of it.
    """
    places = declared.IN_BAND_DEPLOY_PRIORITIES
    is_core = step["interface"] == "deploy" and step["step"] in declared.CORE_DEPLOY_STEPS
    if step["requires_ramdisk"] and not is_core and step["priority"] and step["priority"] not in places:
        raise errors.Invalid(
            field=f"priority of in-band step {label(step)}",
            value=step["priority"],
            allowed=f"It must be between {places.start} and {places.stop - 1}, while the agent runs, or 0.",
        )
    return step
