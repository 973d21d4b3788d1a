"""The plan of a flow: its entries around the steps that the catalog gives; made at the start, and made whole when the
agent is there. Asking for a plan changes nothing, so the API can show it before anybody presses the button."""

from collections.abc import Collection

from ingot.common import errors
from ingot.conductor.steps import catalog
from ingot.conductor.steps.flow import Entry, Flow, Report, Step, key, label
from ingot.conductor.task.task_manager import Task
from ingot.rpcapi import versions

_NO_AGENT = (
    "No agent runs in this flow, so there are no steps that need one: the node boots from a volume, its deploy "
    "interface boots none, or the request says so."
)

_STILL_IN_AGENT = "A run that failed has left the machine in the agent: end that first (abort), or leave this out."


def refuse(exc: errors.IngotError) -> None:
    """The report of those who act on a plan: the first thing that is wrong ends it."""
    raise exc


def at_start(task: Task, flow: Flow, report: Report = refuse) -> list[Step]:
    """The plan before the agent is there: of its steps only those are in it that somebody asks for by name.

    What nobody offers is an error already now where no agent will come.
    """
    if flow.skip(task):
        return leaving(task, flow) if flow.inside(task) else []
    if flow.inside(task) and task.node.request.get("disable_ramdisk"):
        report(errors.Invalid(field="disable_ramdisk", value=True, allowed=_STILL_IN_AGENT))
    steps = flow.plan(task, None, report)
    if not agent_comes(task, flow, [*entering(task, flow), *steps]):
        steps = _without_agent(flow, flow.plan(task, [], _saying_that_no_agent_comes(report)), report)
    return [*entering(task, flow), *steps, *leaving(task, flow)]


def check_templates(task: Task, flow: Flow, traits: Collection[str], report: Report) -> None:
    """Whether the node supports the templates of traits, asked for or not (specification 003)."""
    if agent_comes(task, flow, at_start(task, flow, lambda _exc: None)):
        catalog.check_templates(task, traits, None, report)
    else:
        catalog.check_templates(task, traits, [], _saying_that_no_agent_comes(report))


def _saying_that_no_agent_comes(report: Report) -> Report:
    def tell(exc: errors.IngotError) -> None:
        report(errors.UnknownStep(f"{exc.message} {_NO_AGENT}") if isinstance(exc, errors.UnknownStep) else exc)

    return tell


def _without_agent(flow: Flow, steps: list[Step], report: Report) -> list[Step]:
    """The steps of a deployment that can run without an agent. Another that somebody asked for is reported."""
    if flow.kind != "deploy":
        return steps
    needy = [step for step in steps if step["requires_ramdisk"] and not catalog.is_core(step)]
    for step in needy:
        if step["origin"] != "driver":
            report(errors.UnknownStep(field=f"deploy step of {step['origin']}", value=label(step), allowed=_NO_AGENT))
    return [step for step in steps if step not in needy]


def entering(task: Task, flow: Flow) -> list[Step]:
    """The beginning of every plan of a flow."""
    return _entries(task, flow.first)


def leaving(task: Task, flow: Flow) -> list[Step]:
    """The end of every plan of a flow."""
    return _entries(task, flow.last)


def _entries(task: Task, entries: tuple[Entry, ...]) -> list[Step]:
    """Entries as steps. A request that wants no ramdisk has none: entering and leaving the ramdisk is what they do."""
    return [] if task.node.request.get("disable_ramdisk") else [entry.as_step() for entry in entries]


def default_steps(task: Task, flow: Flow) -> list[Step]:
    """The plan of a time before there were templates and steps of agents: what the driver does when nobody asks."""
    steps = catalog.chosen_by_default(task, str(flow.kind), [])
    return [*entering(task, flow), *steps, *leaving(task, flow)]


def agent_comes(task: Task, flow: Flow, plan: list[Step]) -> bool:
    """Whether an agent will run during a flow: the deploy interface boots one, and the plan has the step that does."""
    if task.driver.deploy is None or flow.kind is None:
        return False
    boots = any(key(step) == flow.collect_after for step in plan)
    return boots and bool(task.driver.deploy.runs_agent(task, flow.kind))


def asks_agent(task: Task, flow: Flow, plan: list[Step]) -> bool:
    """Whether the agent that runs is asked for steps: not in a deployment of a release without them."""
    return agent_comes(task, flow, plan) and (flow.kind != "deploy" or versions.uses_deploy_steps(task.conf))


def with_agent(task: Task, flow: Flow, done: list[Step], offered: list[Step]) -> list[Step]:
    """The plan once it is known what the agent offers: what has run stays, the rest is planned again.

    :param done: the steps that have run, or run now.
    """
    rest = flow.plan(task, offered, refuse)
    for ran in done:
        # A template or an option may have changed since: what has run does not run again for that.
        same = [step for step in rest if key(step) == key(ran)]
        if same:
            rest.remove(ran if ran in same else same[0])
    return [*done, *rest, *leaving(task, flow)]
