"""What a user sees of events: those who follow all nodes, and those of a project, who see what their nodes show them.

An event has the projects that its node belonged to when it was written. So a node that changes hands takes nothing of
its past along, and to judge an event costs no statement.
"""

from collections.abc import Iterator, Mapping

from ingot.api.auth.access import Access, Target, build_target
from ingot.api.nodes import steps
from ingot.db import models

_OF_NO_NODE: Mapping[str, str | None] = {
    "conductor": "baremetal:conductor:get",
    "inbox": "ingot:inbox:get",
    "plan": None,
}
"""Kinds of events that belong to no node, with what users must be allowed to see to get them; None: that depends on
the plan."""

_OF_PLANS = {"deploy_template": "baremetal:deploy_template:get", "runbook": "baremetal:runbook:get"}

_INSIDE = frozenset(("step", "lock", "boot"))
"""Kinds that say what a node does."""

_HIDDEN = {"last_error": "baremetal:node:get:last_error", "maintenance_holds": "ingot:node:maintenance:get"}
"""Data that users of a project get only by a rule of its own."""


def show_all(access: Access, event: models.Event) -> models.Event | None:
    """Return what a user who may follow the events of all nodes sees of one; None: nothing."""
    if event.kind not in _OF_NO_NODE:
        return event
    rule, target = _OF_NO_NODE[event.kind], Target()
    if rule is None:
        about = event.data
        rule = _OF_PLANS.get(about["plan"])
        runbook = models.Runbook(owner=about.get("owner"), public=about.get("public"))
        target = steps.RUNBOOK_OWNERSHIP.target(runbook)
    return event if rule is not None and access.permits(rule, target) else None


def show_own(access: Access, project: str, event: models.Event) -> models.Event | None:
    """Return what a user sees of an event who may follow those of the nodes of a project; None: nothing."""
    if event.kind in _OF_NO_NODE:
        return show_all(access, event)
    rule = "ingot:node:timeline:get" if event.kind in _INSIDE else "baremetal:node:get"
    for target in _list_targets(event, project):
        if access.permits(rule, target):
            return _hide(access, target, event)
    return None


def _list_targets(event: models.Event, project: str) -> Iterator[Target]:
    """Yield what rules compare with for the node of an event, as long as the project has to do with it.

    If the event says that the node changes hands, the former project must learn of it, too: it comes second.
    """
    now: dict[str, object] = {"owner": event.node_owner, "lessee": event.node_lessee}
    former = {name: value for name, value in (event.node_was or {}).items() if name in now}
    for projects in (now, {**now, **former}) if former else (now,):
        if project in projects.values():
            yield build_target("node", **projects)


def _hide(access: Access, target: Target, event: models.Event) -> models.Event:
    """Return an event without what the user may not see; that of the feed is all streams'."""
    hidden = [name for name in _HIDDEN if name in event.data and not access.permits(_HIDDEN[name], target)]
    if not hidden:
        return event
    shown = {name: value for name, value in event.data.items() if name not in hidden}
    return models.Event(**{**vars(event), "data": shown})
