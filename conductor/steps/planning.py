"""The plan of a flow: which steps a node gets, with which priority and arguments, in which order, between the flow's
entries. Made at the start, and completed when the agent is there. Planning changes nothing, so the API can show a plan.

Precedence: request over template over configuration over code (specification 003). Order: highest priority first; equal
priorities by interface, :data:`ingot.common.interfaces.TIE_ORDER` (specification 002).
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ingot.common import errors, interfaces
from ingot.common.json_types import StepRequest
from ingot.common.steps import Key, PlannedStep, Runner, StepJson, get_key, get_label, name_source
from ingot.conductor.steps import children, reserved
from ingot.conductor.steps.flow import Entry, Flow, Report
from ingot.conductor.task.task_manager import Task
from ingot.db import nodes, step_lists
from ingot.drivers.interfaces import arguments, base

_NO_AGENT = (
    "No agent runs in this flow, so there are no steps that need one: the node boots from a volume, its deploy "
    "interface boots none, or the request says so."
)

_STILL_IN_AGENT = "A run that failed has left the machine in the agent: end that first (abort), or leave this out."

_OVERRIDES = {kind: f"{kind}_step_priority_override" for kind in ("clean", "deploy", "verify")}
"""Options of [conductor] with the operator's priorities; steps of other kinds run only when they are requested."""


def raise_error(exc: errors.IngotError) -> None:
    """Raise an error: callers that act on a plan end at the first thing that is wrong."""
    raise exc


# The whole plan


def plan_at_start(task: Task, flow: Flow, report: Report = raise_error) -> list[PlannedStep]:
    """Return the plan before the agent is there: of its steps only those are in it that are requested by name.

    A step that nothing offers is an error already now where no agent will come.
    """
    in_agent = flow.was_left_in_agent(task)
    if flow.skip(task):
        return plan_entries(task, flow.last) if in_agent else []
    if in_agent and task.node.request.get("disable_ramdisk"):
        report(errors.Invalid(field="disable_ramdisk", value=True, allowed=_STILL_IN_AGENT))
    plan = add_entries(task, flow, flow.plan(task, None, report))
    if expects_agent(task, flow, plan):
        return plan
    steps = flow.plan(task, [], _report_without_agent(report))
    return add_entries(task, flow, _drop_in_band(steps, report) if flow.kind == "deploy" else steps)


def plan_with_agent(task: Task, flow: Flow, done: list[PlannedStep]) -> list[PlannedStep]:
    """Return the plan once the agent is there: what has run stays, the rest is planned again with what it offers.

    :param done: the steps that have run, or run now.
    :raises AgentError: the agent does not say what it offers.
    """
    # A deployment that is pinned to a release without such steps asks no agent.
    asks = expects_agent(task, flow, done) and (flow.kind != "deploy" or task.services.uses_deploy_steps)
    rest = flow.plan(task, task.driver.deploy.get_in_band_steps(task, flow.kind) if asks else [], raise_error)
    for ran in done:
        # A template or an option may have changed since: what has run does not run again for that.
        same = [step for step in rest if step.key == ran.key]
        if same:
            rest.remove(ran if ran in same else same[0])
    return [*done, *rest, *plan_entries(task, flow.last)]


def add_entries(task: Task, flow: Flow, steps: list[PlannedStep]) -> list[PlannedStep]:
    """Return the plan that has the flow's entries around steps."""
    return [*plan_entries(task, flow.first), *steps, *plan_entries(task, flow.last)]


def plan_entries(task: Task, entries: tuple[Entry, ...]) -> list[PlannedStep]:
    """Return entries as steps; none for a request without ramdisk: entering and leaving the ramdisk is what they do."""
    return [] if task.node.request.get("disable_ramdisk") else [entry.as_step() for entry in entries]


def expects_agent(task: Task, flow: Flow, plan: list[PlannedStep]) -> bool:
    """Return whether an agent will run: the deploy interface boots one, and the plan has the step that does."""
    boots = any(step.key == flow.collect_after for step in plan)
    return bool(boots and flow.kind and task.driver.deploy and task.driver.deploy.runs_agent(task, flow.kind))


def check_node_templates(task: Task, flow: Flow, traits: Collection[str], report: Report) -> None:
    """Check that the node supports the templates of traits, requested or not (specification 003)."""
    comes = expects_agent(task, flow, plan_at_start(task, flow, lambda _exc: None))
    offers = read_offers(task, "deploy", None if comes else [])
    report = report if comes else _report_without_agent(report)
    for step in _check_all(offers, _template_steps(task, traits), report):
        _check_priority(step, report)


def _report_without_agent(report: Report) -> Report:
    def explain(exc: errors.IngotError) -> None:
        report(errors.UnknownStep(f"{exc.message} {_NO_AGENT}") if isinstance(exc, errors.UnknownStep) else exc)

    return explain


def _drop_in_band(steps: list[PlannedStep], report: Report) -> list[PlannedStep]:
    """Return the steps of a deployment that can run without an agent; a requested one that cannot is reported."""
    in_band = [step for step in steps if step.requires_ramdisk and not _is_core(step.key)]
    for step in in_band:
        if step.origin != "driver":
            report(errors.UnknownStep(field=f"deploy step of {step.origin}", value=step.label, allowed=_NO_AGENT))
    return [step for step in steps if step not in in_band]


# The steps of flows: what their records have as ``plan``


def manual_clean(task: Task, in_band: list[StepJson] | None, report: Report) -> list[PlannedStep]:
    return _plan_requested_order(task, "clean", task.node.request.get("clean_steps", []), in_band, report)


def service(task: Task, in_band: list[StepJson] | None, report: Report) -> list[PlannedStep]:
    return _plan_requested_order(task, "service", task.node.request.get("service_steps", []), in_band, report)


def for_parent(task: Task, _in_band: list[StepJson] | None, report: Report) -> list[PlannedStep]:
    """Return the steps that the flow of a parent node has for this child of it."""
    return _plan_requested_order(task, task.node.request["kind"], task.node.request["steps"], [], report)


def deploy(task: Task, in_band: list[StepJson] | None, report: Report) -> list[PlannedStep]:
    """Return the driver's and the agent's steps, with those of templates and request over them.

    While a rolling upgrade is pinned to a release without deploy steps, only the driver's default steps.
    """
    if not task.services.uses_deploy_steps:
        if pinned := task.node.request.get("deploy_steps"):
            report(
                errors.Invalid(
                    field="deploy_steps",
                    value=[get_label(step) for step in pinned],
                    allowed="There are none while pin_release_version names a release without them: leave them out, or "
                    "unpin once all conductors are of a newer release.",
                )
            )
        return default_steps(task, "deploy", [])
    offers, requests = read_offers(task, "deploy", in_band), deploy_requests(task)
    requested = {get_key(step) for step, _origin in requests}
    defaults = [offer.step for key, offer in offers.steps.items() if key not in requested]
    return _order(_check_priority(step, report) for step in [*_check_all(offers, requests, report), *defaults])


def deploy_requests(task: Task) -> list[tuple[StepRequest, str]]:
    """Return (step, origin) of all that templates and the request ask for; the request's wins over a template's."""
    requested = [(step, "request") for step in task.node.request.get("deploy_steps") or []]
    keys = {get_key(step) for step, _origin in requested}
    from_templates = _template_steps(task, task.node.instance_info.get("traits") or [])
    return [*requested, *((step, origin) for step, origin in from_templates if get_key(step) not in keys)]


def _template_steps(task: Task, traits: Collection[str]) -> list[tuple[StepRequest, str]]:
    """Return (step, origin) of the deploy templates that have the names of traits."""
    return [
        (
            {"interface": row.interface, "step": row.step, "args": row.args, "priority": row.priority},
            f"template {row.template}",
        )
        for row in (step_lists.list_template_steps(task.db, traits) if traits else [])
    ]


def _order(steps: Iterable[PlannedStep]) -> list[PlannedStep]:
    """Return steps in the order in which they run, without those with priority 0."""
    enabled = (step for step in steps if step.priority > 0)
    return sorted(enabled, key=lambda step: (-step.priority, interfaces.TIE_ORDER[step.interface]))


def default_steps(task: Task, kind: str, in_band: list[StepJson] | None) -> list[PlannedStep]:
    """Return the enabled steps of driver and agent, in order: what runs unless something else is requested."""
    return _order(offer.step for offer in read_offers(task, kind, in_band).steps.values())


def _plan_requested_order(
    task: Task, kind: str, requests: list[StepRequest], in_band: list[StepJson] | None, report: Report
) -> list[PlannedStep]:
    """Return the steps of a request, in its order: those that are to run on child nodes, on them."""
    origin = task.node.request.get("origin", "request")
    offers = read_offers(task, kind, in_band)
    steps = [
        _plan_on_children(task, kind, requested, origin, report)
        if requested.get("execute_on_child_nodes")
        else _check_step(offers, requested, origin, report) or _build_placeholder(offers, requested, origin)
        for requested in requests
    ]
    for step in steps if task.node.request.get("disable_ramdisk") else ():
        if step.requires_ramdisk:
            report(
                errors.Invalid(
                    field="disable_ramdisk",
                    value=True,
                    allowed=f"Step {name_source(step.label, step.origin)} runs with the agent's ramdisk only: leave "
                    "out one of the two.",
                )
            )
    return steps


def _plan_on_children(task: Task, kind: str, requested: StepRequest, origin: str, report: Report) -> PlannedStep:
    """Return a step that runs on child nodes, checked against the driver of each."""
    only = requested.get("limit_child_node_execution") or None
    step = dataclasses.replace(_plan_step(requested, origin, Runner.CHILDREN), priority=0, only=only)
    for child in children.list_chosen(task, step):
        on_child = Task(task.services, task.context, nodes.get(task.db, child.uuid))
        if reason := children.unavailable_reason(child):
            report(errors.Invalid(f"Child node {child.uuid} {reason}"))
        try:
            _plan_requested(read_offers(on_child, kind, []), requested, origin)
        except errors.IngotError as exc:
            report(errors.Invalid(f"Child node {child.uuid}: {exc.message}"))
    return step


# What driver and agent offer


class StepOffer(NamedTuple):
    """A step that driver or agent offer for a node, as it is planned unless a request says otherwise."""

    step: PlannedStep
    argsinfo: Mapping[str, Mapping[str, object]] | None
    priority_of_agent: bool


class Offers(NamedTuple):
    """What a node's driver and agent offer.

    :param has_agents: whether the agent's steps are among them. If not, an unknown step may be one of those.
    """

    kind: str
    steps: dict[Key, StepOffer]
    has_agents: bool


def read_offers(task: Task, kind: str, in_band: list[StepJson] | None) -> Offers:
    """Return every step of a kind that driver or agent offer for the node, with the priorities of the configuration.

    A step that an interface declares wins over one of the same name that the agent offers: the interface's calls the
    agent's and knows more about it.
    """
    overrides: Mapping[str, int] = task.conf.conductor[_OVERRIDES[kind]] if kind in _OVERRIDES else {}
    found: dict[Key, StepOffer] = {}
    for interface in task.driver.all_interfaces:
        for offered in getattr(interface, f"get_{kind}_steps")(task):
            found[get_key(offered)] = _plan_offer(offered, Runner.DRIVER)
    for offered in in_band or []:
        # A repeated call of one of these finds the command that was posted, and posts none twice.
        of_agent = _plan_offer({**offered, "idempotent": True}, Runner.AGENT)
        offer = found.get(of_agent.step.key, of_agent)
        priority = of_agent.step.priority if offer.priority_of_agent else offer.step.priority
        reboot = of_agent.step.reboot_requested  # the agent's to say, whatever calls its step
        step = dataclasses.replace(offer.step, priority=priority, reboot_requested=reboot)
        found[step.key] = offer._replace(step=step)
    for key, offer in found.items():
        if offer.step.label in overrides:
            step = dataclasses.replace(offer.step, priority=overrides[offer.step.label])
            _check_core(step)
            found[key] = offer._replace(step=step)
    return Offers(kind, found, in_band is not None)


def _plan_offer(offered: StepJson, runner: Runner) -> StepOffer:
    step = _plan_step(offered, runner.value, runner)
    return StepOffer(step, offered.get("argsinfo"), bool(offered.get("priority_of_agent")))


def _plan_step(step: StepJson | StepRequest, origin: str, runner: Runner) -> PlannedStep:
    """Return an offered or requested step as the plan keeps it.

    One that the conductor runs may be aborted while it waits, and repeated.
    """
    facts: Mapping[str, Any] = step
    is_own = runner in (Runner.RESERVED, Runner.CHILDREN)
    return PlannedStep(
        interface=step["interface"],
        step=step["step"],
        origin=origin,
        runner=runner,
        priority=step.get("priority", 0),
        args=dict(step.get("args") or {}),
        abortable=is_own or bool(facts.get("abortable")),
        idempotent=is_own or bool(facts.get("idempotent")),
        requires_ramdisk=bool(facts.get("requires_ramdisk", runner is Runner.AGENT)),
        reboot_requested=bool(facts.get("reboot_requested")),
    )


# What is requested, checked against what is offered


def _check_all(offers: Offers, requests: Iterable[tuple[StepRequest, str]], report: Report) -> list[PlannedStep]:
    """Return those of (step, origin) that are known and right."""
    checked = (_check_step(offers, requested, origin, report) for requested, origin in requests)
    return [step for step in checked if step is not None]


def _check_step(offers: Offers, requested: StepRequest, origin: str, report: Report) -> PlannedStep | None:
    """Return a requested step as the plan keeps it.

    None: it is wrong, which is reported, or nothing offers it yet and it may be one of the agent's.
    """
    try:
        if offers.kind == "deploy":
            _check_core(_plan_step(requested, origin, Runner.DRIVER))
        if offers.has_agents or get_key(requested) in offers.steps or requested["step"] in reserved.STEPS:
            return _plan_requested(offers, requested, origin)
    except errors.IngotError as exc:
        report(exc)
    return None


def _build_placeholder(offers: Offers, requested: StepRequest, origin: str) -> PlannedStep:
    """Return what a plan shows of a step that is wrong, or that nothing offers yet: that one may be the agent's."""
    if get_key(requested) in offers.steps:
        return dataclasses.replace(offers.steps[get_key(requested)].step, origin=origin)
    return _plan_step(requested, origin, Runner.RESERVED if requested["step"] in reserved.STEPS else Runner.AGENT)


def _plan_requested(offers: Offers, requested: StepRequest, origin: str) -> PlannedStep:
    """Return a requested step, checked against what is offered.

    :raises Invalid: nothing offers it, or its arguments are wrong; the message names step and argument.
    """
    args, priority = requested.get("args") or {}, requested.get("priority", 0)
    name = name_source(get_label(requested), origin)
    if get_key(requested) in offers.steps:
        offered, argsinfo, _open = offers.steps[get_key(requested)]
        if argsinfo is not None or offered.runner is not Runner.AGENT:
            args = arguments.read(name, args, argsinfo or {})  # agents need not describe arguments: they check them
        return dataclasses.replace(offered, args=args, priority=priority, origin=origin)
    if requested["step"] in reserved.STEPS:
        rule = reserved.STEPS[requested["step"]]
        rule.check(name, arguments.read(name, args, rule.argsinfo))
        return _plan_step(requested, origin, Runner.RESERVED)
    interface = requested["interface"]
    known = ", ".join(sorted(one.step.label for one in offers.steps.values() if one.step.interface == interface))
    raise errors.UnknownStep(
        field=f"{offers.kind} step of {origin}",
        value=get_label(requested),
        allowed=f"Interface {interface} of this node offers: {known or 'no such steps'}. Everywhere there "
        f"are: {', '.join(sorted(reserved.STEPS))}.",
    )


def _is_core(key: Key) -> bool:
    """Return whether a step is one of the core steps of a deployment."""
    return key[0] == "deploy" and key[1] in base.CORE_DEPLOY_STEPS


def _check_core(step: PlannedStep) -> None:
    if _is_core(step.key) and step.priority != 0:
        raise errors.Invalid(
            field=f"priority of core step {name_source(step.label, step.origin)}",
            value=step.priority,
            allowed="A core step's priority can only be overridden by 0, which disables it.",
        )


def _check_priority(step: PlannedStep, report: Report) -> PlannedStep:
    """Return the step; it is reported if it is an in-band deploy step outside of their range (specification 000)."""
    allowed = base.IN_BAND_DEPLOY_PRIORITIES
    is_inside = allowed.start <= step.priority <= allowed.stop - 1  # agents may have fractions
    if step.requires_ramdisk and not _is_core(step.key) and step.priority and not is_inside:
        report(
            errors.Invalid(
                field=f"priority of in-band step {name_source(step.label, step.origin)}",
                value=step.priority,
                allowed=f"It must be between {allowed.start} and {allowed.stop - 1}, while the agent runs, or 0.",
            )
        )
    return step
