"""Provision requests: what a client asks of a node, checked, and accepted with one statement.

One statement accepts a request: from then on the work is in the database. The message that follows is only a hint.
"""

import base64
import binascii
from typing import cast

from passlib.hash import sha512_crypt

from ingot.api.auth import access
from ingot.api.nodes import node_rules, node_states, steps
from ingot.api.nodes import nodes as api_nodes
from ingot.api.nodes.verbs import ARGUMENTS, VERBS, Columns, Verb, enter, find_allowed
from ingot.api.web import call as calls
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import operation
from ingot.common import clock, errors, states
from ingot.common.json_types import FlowRequest, Json
from ingot.db import models, nodes

_SHADOW = sha512_crypt.using(rounds=100_000)
"""How /etc/shadow of every ramdisk may have a password: guessing is dear, and a request takes some 50 ms."""

_BODY = fields.Body(
    "provision request",
    (
        Field("target", type=fields.FieldType({"type": ["string", "null"], "maxLength": 80}), required=True),
        *ARGUMENTS.values(),
    ),
)

_READ = (*node_states.LOCK, "provision_state", "target_provision_state", "last_error", "flow", "run_id", "parent_node",
         "maintenance", "maintenance_reason", "protected", "protected_reason", "retired", "retired_reason")  # fmt: skip

_STEPS_WITH_RULE = frozenset(("clean_steps", "service_steps"))
_STEP_LISTS = _STEPS_WITH_RULE | {"deploy_steps"}


@operation(body=_BODY, answer=operations.EMPTY_202)
def set_provision(call: Call, node: str) -> Reply:
    """Accept a verb for a node: check it, write it into the node's row, notify the conductor."""
    target = call.body["target"]
    verb = VERBS.get(target)
    if verb is None:
        allowed = ", ".join(sorted(verb.name for verb in VERBS.values() if verb.since <= call.minor))
        raise errors.Invalid(field="target", value=target, allowed=f"A provision request asks for one of: {allowed}.")
    if verb.since > call.minor:
        raise errors.VersionRefused(minor=verb.since)
    arguments = check_arguments(call, verb, call.body)
    return calls.retry_if_changed(lambda: _accept(call, node, verb, arguments))


def _accept(call: Call, ident: str, verb: Verb, arguments: Json) -> Reply:
    node = api_nodes.read(call, ident, *_READ)
    for name in _STEPS_WITH_RULE.intersection(arguments):
        call.access.require(f"{call.rule}:{name}", access.build_node_target(node))
    reached = _check_state(call, node, verb)
    for refuse in verb.refuse:
        refuse(node, verb.name)
    if verb.begins_flow(node):
        api_nodes.accept(call, node, _begin_flow(call, node, verb, reached, arguments), why=verb.name)
    else:
        columns = verb.columns_else(node, reached)
        why = verb.name if columns["due_at"] else ""
        api_nodes.accept(call, node, columns, why=why, locked=verb.interrupts)
    return calls.accepted_reply(call, f"/v1/nodes/{node.uuid}/states")


def _check_state(call: Call, node: models.Node, verb: Verb) -> str:
    """Return the state that a verb leads to from that of the node.

    :raises NodeLocked: a conductor works on the node, and would have to be interrupted.
    :raises Conflict: steps of its parent run on it.
    :raises StateTransitionRefused: the verb leads nowhere.
    :raises VersionRefused: from this state the verb is younger than the request's version.
    """
    reached = states.requested_state(node.provision_state, verb.event)
    if node.reservation is not None and not (verb.interrupts and reached):
        raise nodes.locked_error(node)
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


def check_arguments(call: Call, verb: Verb, body: Json) -> Json:
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
    return {name: steps.parse_numbers(value) if name in _STEP_LISTS else value for name, value in given.items()}


def _check_drive(call: Call, drive: Json | str | None) -> None:
    if isinstance(drive, dict):
        since = 59 if "vendor_data" in drive else 56
        if call.minor < since:
            raise errors.VersionRefused(minor=since)
    elif drive is not None and not _is_url(drive):
        try:
            base64.b64decode("".join(drive.split()), validate=True)
        except binascii.Error as exc:
            raise errors.Invalid(
                field="configdrive",
                value=drive,
                allowed=f"Send base64 ({exc}), a http or https URL, or an object.",
            ) from exc


def _is_url(drive: str) -> bool:
    return drive.lower().startswith(("http://", "https://"))


def build_request(call: Call, node: models.Node, verb: Verb, arguments: Json) -> FlowRequest:
    """Return what the flow of a verb works with: runbooks and names of children have been looked up.

    :param node: needs id and uuid.
    :param arguments: as :func:`check_arguments` gives them.
    :raises NotFound: there is no such runbook.
    :raises Invalid: a runbook or child does not belong to the node.
    """
    request: Json = {name: value for name, value in arguments.items() if name != "runbook"}
    if "rescue_password" in request:  # the user's own word goes no further than this
        request["rescue_password"] = _SHADOW.hash(request["rescue_password"])
    name = f"{verb.name}_steps"
    if "runbook" in arguments:
        runbook = steps.find_runbook(call, arguments["runbook"], node)
        request[name] = sorted(runbook.steps, key=lambda step: int(step["order"]))
        request["disable_ramdisk"] = runbook.disable_ramdisk or "disable_ramdisk" in arguments
        request["origin"] = f"runbook {runbook.name}"
    elif name in request:
        request[name] = steps.resolve_children(call, node, name, request[name])
    return cast(FlowRequest, request)


def _begin_flow(call: Call, node: models.Node, verb: Verb, reached: str, arguments: Json) -> Columns:
    """Return the columns that give the conductor a flow to run.

    :raises Invalid: the node's conductor says that it cannot be run.
    """
    request = build_request(call, node, verb, arguments)
    request.update(verb.request)
    columns = dict(verb.columns)
    drive = request.get("configdrive")
    if isinstance(drive, str) and not _is_url(drive):
        columns["configdrive"] = request.pop("configdrive")
    if verb.validation == "validate_deploy":
        call.client.call(call.ctx, node, verb.validation, request=request)
    elif verb.validation:
        call.client.call(call.ctx, node, verb.validation, flow=verb.flow)
    if node.run_id is not None:  # what waits now is cut off
        request["replaces"] = {"flow": str(node.flow), "run": node.run_id}
    if call.ctx.user_id is not None:  # for the history of the node
        request["asked_by"] = {"user": call.ctx.user_id, "project": call.ctx.project_id}
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
