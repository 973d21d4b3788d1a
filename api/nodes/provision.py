"""Provision requests: what a client asks of a node, checked and accepted; and the plans of flows before that.

One statement accepts a request: from then on the work is in the database. The message that follows is only a hint.
"""

from typing import TYPE_CHECKING, cast

from oslo_log import log

from ingot.api.auth import access
from ingot.api.nodes import node_rules, node_states, steps
from ingot.api.nodes import nodes as api_nodes
from ingot.api.nodes.verbs import ARGUMENTS, VERBS, Columns, Verb, enter, find_allowed
from ingot.api.web import call as calls
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import clock, config_drives, errors, later, states
from ingot.common.json_types import FlowRequest, Json
from ingot.db import maintenance, models, node_refusals

if TYPE_CHECKING:
    from passlib import hash as hashes
else:
    hashes = later.Module("passlib.hash")

LOG = log.getLogger(__name__)

_ROUNDS = 100_000
"""Of the hash that /etc/shadow of every ramdisk may have: guessing is dear, and a request takes some 50 ms."""

_BODY = fields.Body("provision request", node_states.TARGET, *ARGUMENTS.values())

_READ = (*node_states.LOCK, "provision_state", "target_provision_state", "last_error", "flow", "run_id", "parent_node",
         "protected", "protected_reason", "retired", "retired_reason", *maintenance.FLAG)  # fmt: skip

_STEPS_WITH_RULE = frozenset(("clean_steps", "service_steps"))


@operation(body=_BODY, answer=operations.EMPTY_202)
@calls.repeat_if_changed
def set_provision(call: Call, node: str) -> Reply:
    """Accept a verb for a node: check it, write it into the node's row, notify the conductor."""
    verb = _find_verb(call)
    arguments = _check_arguments(call, verb, call.body)
    found = api_nodes.read(call, node, *_READ)
    for name in _STEPS_WITH_RULE.intersection(arguments):
        call.access.require(f"{call.rule}:{name}", access.build_node_target(found))
    reached = _check_state(call, found, verb)
    begins = verb.flow is not None and found.provision_state in verb.flow_in
    if begins and found.maintenance:
        node_rules.refuse_unconfirmed(found, verb.name)
    for refuse in verb.refuse:
        refuse(found, verb.name)
    columns = _begin_flow(call, found, verb, reached, arguments) if begins else verb.columns_else(found, reached)
    why = verb.name if columns["due_at"] else ""
    api_nodes.accept(call, found, columns, why, locked=verb.interrupts and not begins)
    return calls.accepted_reply(call, f"/v1/nodes/{found.uuid}/states")


def _find_verb(call: Call) -> Verb:
    """Return the verb that is requested.

    :raises Invalid: there is none of the name.
    :raises VersionRefused: it is newer than the request's version.
    """
    target = call.body["target"]
    verb = VERBS.get(target)
    if verb is None:
        allowed = ", ".join(sorted(verb.name for verb in VERBS.values() if verb.since <= call.minor))
        raise errors.Invalid(field="target", value=target, allowed=f"A provision request asks for one of: {allowed}.")
    if verb.since > call.minor:
        raise errors.VersionRefused(minor=verb.since)
    return verb


def _check_state(call: Call, node: models.Node, verb: Verb) -> str:
    """Return the state that a verb leads to from that of the node.

    :raises NodeLocked: a conductor works on the node, and would have to be interrupted.
    :raises Conflict: steps of its parent run on it.
    :raises StateTransitionRefused: the verb leads nowhere.
    :raises VersionRefused: from this state the verb is younger than the request's version.
    """
    reached = states.requested_state(node.provision_state, verb.event)
    if node.reservation is not None and not (verb.interrupts and reached):
        raise node_refusals.locked_error(node)
    if node.flow is not None:
        node_rules.refuse_in_parent_flow(node, f"asked to {verb.name}")
    if reached is None:
        possible = ", ".join(find_allowed(node.provision_state)) or "waiting"
        raise errors.StateTransitionRefused(
            action=verb.name, node=node.uuid, state=node.provision_state, possible=possible
        )
    since = verb.since_in.get(node.provision_state, 1)
    if call.minor < since:
        raise errors.VersionRefused(minor=since)
    return reached


def _check_arguments(call: Call, verb: Verb, body: Json) -> Json:
    """Return the arguments in a body that mean something, checked against the verb.

    :raises Invalid: one does not go with the verb, or one that it needs is missing.
    :raises VersionRefused: one is newer than the request's version.
    """
    given = {name: value for name, value in body.items() if name in ARGUMENTS and value not in (None, [], False)}
    for name in given:
        if not verb.takes(name, call.minor):
            able = ", ".join(sorted(other.name for other in VERBS.values() if other.takes(name, call.minor)))
            message = f'"{name}" is only valid when setting target provision state to {able}, not {verb.name}.'
            raise errors.Invalid(message)
    if verb.needs and not any(str(given.get(name, "")).strip() for name in verb.needs):
        raise errors.Invalid(
            f'A non-empty "{verb.needs[0]}" is required when setting target provision state to {verb.name}. Accepted: '
            f"{', '.join(verb.needs)}."
        )
    if "runbook" in given and f"{verb.name}_steps" in given:
        raise errors.Invalid(field="runbook", value=given["runbook"], allowed=f"Leave out this or {verb.name}_steps.")
    _check_drive(call, given.get("configdrive"))
    return given


def _check_drive(call: Call, drive: Json | str | None) -> None:
    if isinstance(drive, dict):
        since = 59 if "vendor_data" in drive else 56
        if call.minor < since:
            raise errors.VersionRefused(minor=since)
    elif drive is not None and not config_drives.is_url(drive):
        try:
            config_drives.check(config_drives.decode(drive), call.conf.deploy.configdrive_max_size * 1024**2)
        except ValueError as exc:
            allowed = f"Send gzip in base64 ({exc}), a http or https URL, or an object."
            raise errors.Invalid(field="configdrive", value=drive, allowed=allowed) from None


def _build_request(call: Call, node: models.Node, verb: Verb, arguments: Json) -> FlowRequest:
    """Return what the flow of a verb works with: runbooks and names of children have been looked up.

    :param node: needs id and uuid.
    :param arguments: as :func:`_check_arguments` gives them.
    :raises NotFound: there is no such runbook.
    :raises Invalid: a runbook or child does not belong to the node.
    """
    request = dict(arguments)
    if "rescue_password" in request:  # the user's own word goes no further than this
        request["rescue_password"] = hashes.sha512_crypt.using(rounds=_ROUNDS).hash(request["rescue_password"])
    name = f"{verb.name}_steps"
    if "runbook" in request:
        runbook = steps.find_runbook(call, request.pop("runbook"), node)
        request[name] = sorted(runbook.steps, key=lambda step: int(step["order"]))
        request["disable_ramdisk"] = runbook.disable_ramdisk or "disable_ramdisk" in request
        request["origin"] = f"runbook {runbook.name}"
    elif name in request:
        request[name] = steps.resolve_children(call, node, name, request[name])
    return cast(FlowRequest, request)


def _begin_flow(call: Call, node: models.Node, verb: Verb, reached: str, arguments: Json) -> Columns:
    """Return the columns that give the conductor a flow to run.

    A conductor that does not answer is not waited for: the flow begins with what it would have checked.

    :raises Invalid: the node's conductor says that it cannot be run.
    """
    request = _build_request(call, node, verb, arguments)
    request.update(verb.request)
    columns = dict(verb.columns)
    drive = request.get("configdrive")
    if isinstance(drive, str) and not config_drives.is_url(drive):
        columns["configdrive"] = request.pop("configdrive")
    if verb.validation:
        about = {"request": request} if verb.validation == "validate_deploy" else {"flow": verb.flow}
        try:
            call.client.call(call.ctx, node, verb.validation, **about)
        except errors.ConductorAway as exc:
            if call.dry_run:
                raise
            LOG.warning("Node %s: %s is accepted, and checked when it begins: %s", node.uuid, verb.name, exc.message)
            request["unchecked"] = {"project": call.ctx.project_id, "roles": list(call.ctx.roles)}
    if node.run_id is not None:  # what waits now is cut off
        request["replaces"] = {"flow": str(node.flow), "run": node.run_id}
    request["asked_by"] = api_nodes.build_requester(call)
    state = verb.state or reached
    return {
        **enter(state, verb.target or states.TARGETS.get(state)),
        "flow": verb.flow,
        "request": request,
        "abort_requested": False,
        "due_at": clock.now(),
        "run_id": None,
        **columns,
    }


# The plan of a flow before it is requested: steps in their order, and all that is wrong with them. It takes what a
# provision request takes, without its target. Under /ingot/v1, as the timeline, which has the same steps afterwards.

_PLANS = frozenset(verb.plan for verb in VERBS.values() if verb.plan)
"""What ``flow`` may be."""

_FLOW = Param("flow", operations.build_choice(_PLANS))

_STEP = fields.complete_schema(
    {
        **dict.fromkeys(("interface", "step", "origin", "runner"), fields.TEXT_SCHEMA),
        **dict.fromkeys(("abortable", "requires_ramdisk", "reboot_requested", "presumed"), fields.FLAG_SCHEMA),
        "priority": {"type": "number"},
        "args": {"type": "object"},
    }
)
_PLAN = fields.complete_schema(
    {
        "node_uuid": fields.TEXT_SCHEMA,
        "flow": {"enum": sorted(_PLANS)},
        "steps": {"type": "array", "items": _STEP},
        "in_band_steps_known": fields.FLAG_SCHEMA,
        "errors": {"type": "array", "items": fields.TEXT_SCHEMA},
    }
)


@operation(_FLOW, body=fields.Body("plan request", *ARGUMENTS.values()), answer=Answer(shows=Plain(_PLAN)))
def create_plan(call: Call, node: str) -> Reply:
    """Show the plan of a request; nothing is created but the answer."""
    if "flow" not in call.query:
        raise errors.Invalid(f"Say what to plan: send flow=, one of {', '.join(sorted(_PLANS))}.")
    flow, body = call.query["flow"], call.body or {}
    planned = [verb for verb in VERBS.values() if verb.plan == flow]
    # An empty body plans the verb that takes no arguments, where there is one.
    verb = (max if body else min)(planned, key=lambda verb: len(verb.arguments))
    arguments = _check_arguments(call, verb, body)
    found = api_nodes.read(call, node, "uuid", "driver", "conductor_group")
    request = _build_request(call, found, verb, arguments)
    request.pop("configdrive", None)  # megabytes, and no plan depends on it
    request.pop("rescue_password", None)  # a secret, likewise
    plan: Json = call.client.call(call.ctx, found, "get_plan", flow=verb.flow, request=request)
    return Reply({"node_uuid": found.uuid, "flow": flow, **plan})


@operation(_FLOW, answer=Answer(shows=Plain(_PLAN)))
def show_plan(call: Call, node: str) -> Reply:
    """Show the plan of a request without arguments."""
    return create_plan.handler(call, node)
