"""Which steps a flow gets for a node, with which priority and arguments, and in which order.

Precedence of what is asked for: request over template over configuration over code (specification 003). Order: highest
priority first; equal priorities by interface, :data:`ingot.common.interfaces.TIE_ORDER` (specification 002).
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from ingot.common import errors, interfaces
from ingot.conductor.steps import children, reserved
from ingot.conductor.steps.flow import Key, Report, Step, key, label, planned
from ingot.conductor.task.task_manager import Task
from ingot.db import nodes, step_lists
from ingot.drivers.interfaces import base
from ingot.rpcapi import versions

_OVERRIDES = {"clean": "clean_step_priority_override", "deploy": "deploy_step_priority_override"}
"""Options of [conductor] with the operator's priorities; steps of other kinds run only when they are asked for."""


class _Offer(NamedTuple):
    """What a node's driver and agent offer.

    :param has_agents: whether the agent's steps are among them. If not, what nobody offers may be one of those.
    """

    kind: str
    steps: dict[Key, Step]
    has_agents: bool


def ordered(steps: Iterable[Step]) -> list[Step]:
    """Steps in the order in which they run; those with priority 0 are left out."""
    wanted = (step for step in steps if step["priority"] > 0)
    return sorted(wanted, key=lambda step: (-step["priority"], interfaces.TIE_ORDER[step["interface"]]))


def chosen_by_default(task: Task, kind: str, in_band: list[Step] | None) -> list[Step]:
    """The enabled steps of driver and agent, in order: what runs when nobody asks for anything else."""
    return ordered(_plain(step) for step in available(task, kind, in_band or []).values())


def automated_clean(task: Task, in_band: list[Step] | None, _report: Report) -> list[Step]:
    return chosen_by_default(task, "clean", in_band)


def verify(task: Task, in_band: list[Step] | None, _report: Report) -> list[Step]:
    return chosen_by_default(task, "verify", in_band)


def manual_clean(task: Task, in_band: list[Step] | None, report: Report) -> list[Step]:
    return _in_order(task, "clean", task.node.request.get("clean_steps", []), in_band, report)


def service(task: Task, in_band: list[Step] | None, report: Report) -> list[Step]:
    return _in_order(task, "service", task.node.request.get("service_steps", []), in_band, report)


def for_parent(task: Task, _in_band: list[Step] | None, report: Report) -> list[Step]:
    """The steps that the flow of a parent node has for this child of it."""
    return _in_order(task, task.node.request["kind"], task.node.request["steps"], [], report)


def deploy(task: Task, in_band: list[Step] | None, report: Report) -> list[Step]:
    """The driver's and the agent's steps, with those of templates and request over them.

    While a rolling upgrade is pinned to a release without deploy steps, only what the driver does by itself.
    """
    if not versions.uses_deploy_steps(task.conf):
        _check_pinned(task, report)
        return chosen_by_default(task, "deploy", [])
    offer, requests = _offer(task, "deploy", in_band), deploy_requests(task)
    overridden = {key(wanted) for wanted, _origin in requests}
    default_steps = [_plain(step) for step in offer.steps.values() if key(step) not in overridden]
    return ordered(_placed(step, report) for step in [*_known(offer, requests, report), *default_steps])


def _check_pinned(task: Task, report: Report) -> None:
    asked = task.node.request.get("deploy_steps")
    if asked:
        report(
            errors.Invalid(
                field="deploy_steps",
                value=[label(step) for step in asked],
                allowed="There are none while pin_release_version names a release without them: leave them out, or "
                "unpin once all conductors are of a newer release.",
            )
        )


def deploy_requests(task: Task) -> list[tuple[Step, str]]:
    """(step, origin) of everything that templates and the request ask for; the request's wins over a template's."""
    requested = [(step, "request") for step in task.node.request.get("deploy_steps") or []]
    taken = {key(step) for step, _origin in requested}
    from_templates = template_steps(task, task.node.instance_info.get("traits") or [])
    return [*requested, *((step, origin) for step, origin in from_templates if key(step) not in taken)]


def template_steps(task: Task, traits: Collection[str]) -> list[tuple[Step, str]]:
    """(step, origin) of the deploy templates that have the names of traits."""
    return [
        (
            {"interface": row.interface, "step": row.step, "args": row.args, "priority": row.priority},
            f"template {row.template}",
        )
        for row in (step_lists.list_template_steps(task.db, traits) if traits else [])
    ]


def check_templates(task: Task, traits: Collection[str], in_band: list[Step] | None, report: Report) -> None:
    """Whether the node supports the templates of traits, asked for or not (specification 003)."""
    for step in _known(_offer(task, "deploy", in_band), template_steps(task, traits), report):
        _placed(step, report)


def available(task: Task, kind: str, in_band: Iterable[Step]) -> dict[Key, Step]:
    """Every step of a kind that driver or agent offer for the node, with the priorities that configuration gives.

    A step that an interface declares wins over one of the same name that the agent offers: the interface's calls the
    agent's and knows more about it.
    """
    overrides = task.conf.conductor[_OVERRIDES[kind]] if kind in _OVERRIDES else {}
    found: dict[Key, Step] = {}
    for interface in task.driver.all_interfaces:
        for step in getattr(interface, f"get_{kind}_steps")(task):
            found[key(step)] = {**step, "origin": "driver", "runner": "driver"}
    for step in in_band:
        # Whoever repeats one of these finds the command that was posted, and posts none twice.
        offered = found.setdefault(key(step), {**step, "origin": "agent", "runner": "agent", "idempotent": True})
        offered["reboot_requested"] = step.get("reboot_requested")  # the agent's to say, whoever calls its step
    for step in found.values():
        if label(step) in overrides:
            _check_core({**step, "priority": overrides[label(step)]})
            step["priority"] = overrides[label(step)]
    return found


def _offer(task: Task, kind: str, in_band: list[Step] | None) -> _Offer:
    return _Offer(kind, available(task, kind, in_band or []), in_band is not None)


def _in_order(task: Task, kind: str, wanted: list[Step], in_band: list[Step] | None, report: Report) -> list[Step]:
    """The steps of a request, in its order: those that are to run on child nodes, on them."""
    origin = task.node.request.get("origin", "request")
    offer = _offer(task, kind, in_band)
    steps: list[Step] = []
    for asked in wanted:
        step = {"priority": 0, **asked}
        if step.get("execute_on_child_nodes"):
            steps.append(_on_children(task, kind, step, origin, report))
        else:
            steps.append(_checked(offer, step, origin, report) or _in_its_place(offer, step, origin))
    if task.node.request.get("disable_ramdisk"):
        _check_without_ramdisk(steps, report)
    return steps


def _on_children(task: Task, kind: str, wanted: Step, origin: str, report: Report) -> Step:
    """A step that runs on child nodes, checked against the driver of each."""
    args = dict(wanted.get("args") or {})
    step = planned(*key(wanted), origin, "children", args=args, abortable=True, idempotent=True)
    step["only"] = wanted.get("limit_child_node_execution") or None
    for child in children.chosen(task, step):
        on_child = Task(task.services, task.context, nodes.get(task.db, child.uuid))
        if unfit := children.unavailable_reason(child):
            report(errors.Invalid(f"Child node {child.uuid} {unfit}"))
        try:
            _requested(_offer(on_child, kind, []), wanted, origin)
        except errors.IngotError as exc:
            report(errors.Invalid(f"Child node {child.uuid}: {exc.message}"))
    return step


def _check_without_ramdisk(steps: list[Step], report: Report) -> None:
    for step in steps:
        if step["requires_ramdisk"]:
            report(
                errors.Invalid(
                    field="disable_ramdisk",
                    value=True,
                    allowed=f"Step {label(step)} runs with the agent's ramdisk only: leave out one of the two.",
                )
            )


def _plain(step: Step) -> Step:
    """A step as the plan keeps it, run with its own priority and without arguments."""
    return planned(
        *key(step),
        step["origin"],
        step["runner"],
        priority=step["priority"],
        args=dict(step.get("args") or {}),
        abortable=bool(step.get("abortable")),
        idempotent=bool(step.get("idempotent")),
        requires_ramdisk=bool(step.get("requires_ramdisk", step["runner"] == "agent")),
        reboot_requested=bool(step.get("reboot_requested")),
    )


def _known(offer: _Offer, requests: Iterable[tuple[Step, str]], report: Report) -> list[Step]:
    """Of (step, origin) that somebody asked for those that are known and right."""
    checked = (_checked(offer, wanted, origin, report) for wanted, origin in requests)
    return [step for step in checked if step is not None]


def _checked(offer: _Offer, wanted: Step, origin: str, report: Report) -> Step | None:
    """A step that somebody asked for, as the plan keeps it; None if it is wrong, which is reported, or if nobody offers
    it yet and it may be one of the agent's."""
    try:
        if offer.kind == "deploy":
            _check_core(wanted)
        if offer.has_agents or key(wanted) in offer.steps or wanted["step"] in reserved.STEPS:
            return _requested(offer, wanted, origin)
    except errors.IngotError as exc:
        report(exc)
    return None


def _in_its_place(offer: _Offer, wanted: Step, origin: str) -> Step:
    """What a plan shows of a step that is wrong, or that nobody offers yet."""
    if key(wanted) in offer.steps:
        return {**_plain(offer.steps[key(wanted)]), "origin": origin}
    return reserved.as_step(wanted, origin) if wanted["step"] in reserved.STEPS else presumed(wanted, origin)


def presumed(wanted: Step, origin: str) -> Step:
    """A step that nobody offers as long as the agent was not asked, taken for one of the agent's."""
    return _plain({**wanted, "origin": origin, "runner": "agent"})


def _requested(offer: _Offer, wanted: Step, origin: str) -> Step:
    """A step that somebody asked for, checked against what is offered.

    :raises Invalid: nobody offers it, or its arguments are wrong; the message names step and argument.
    """
    if key(wanted) in offer.steps:
        step = offer.steps[key(wanted)]
        args = wanted.get("args") or {}
        _check_args(step, args)
        return {**_plain(step), "args": args, "priority": wanted["priority"], "origin": origin}
    if wanted["step"] in reserved.STEPS:
        step, rule = reserved.as_step(wanted, origin), reserved.STEPS[wanted["step"]]
        _check_args({**step, "argsinfo": rule.argsinfo}, step["args"])
        rule.check(step["args"])
        return step
    known = ", ".join(sorted(label(step) for step in offer.steps.values() if step["interface"] == wanted["interface"]))
    raise errors.UnknownStep(
        field=f"{offer.kind} step of {origin}",
        value=label(wanted),
        allowed=f"Interface {wanted['interface']} of this node offers: {known or 'no such steps'}. Everywhere there "
        f"are: {', '.join(sorted(reserved.STEPS))}.",
    )


def _check_args(step: Step, args: dict[str, Any]) -> None:
    argsinfo = step.get("argsinfo")
    if argsinfo is None and step["runner"] == "agent":
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


def is_core(step: Step) -> bool:
    """Whether a step is one of the core steps of a deployment."""
    return step["interface"] == "deploy" and step["step"] in base.CORE_DEPLOY_STEPS


def _check_core(wanted: Step) -> None:
    if is_core(wanted) and wanted["priority"] != 0:
        raise errors.Invalid(
            field=f"priority of core step {label(wanted)}",
            value=wanted["priority"],
            allowed="A core step's priority can only be overridden by 0, which disables it.",
        )


def _placed(step: Step, report: Report) -> Step:
    """The step; it is reported if it is an in-band deploy step outside of their range (specification 000)."""
    places = base.IN_BAND_DEPLOY_PRIORITIES
    inside = places.start <= step["priority"] <= places.stop - 1  # agents may have fractions
    if step["requires_ramdisk"] and not is_core(step) and step["priority"] and not inside:
        report(
            errors.Invalid(
                field=f"priority of in-band step {label(step)}",
                value=step["priority"],
                allowed=f"It must be between {places.start} and {places.stop - 1}, while the agent runs, or 0.",
            )
        )
    return step
