"""Provision requests: verbs, their arguments, and what accepting one writes.

One statement accepts a request: from then on the work is in the database. The message that follows is only a hint.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from passlib.hash import sha512_crypt

from ingot.api.auth import access
from ingot.api.nodes import children, node_rules, node_states, steps
from ingot.api.nodes import nodes as api_nodes
from ingot.api.resources import runbooks
from ingot.api.web import call as calls
from ingot.api.web import field_types, fields, schemas
from ingot.api.web.call import Call, Reply, operation
from ingot.api.web.fields import Field
from ingot.common import clock, errors, states
from ingot.db import models, nodes

_DEPLOYS = frozenset((states.ACTIVE, "deploy", "rebuild"))

FLOWS: dict[str, str] = {
    "abort": "leave_service",
    "adopt": "adopt",
    **dict.fromkeys(_DEPLOYS, "deploy"),
    "clean": "manual_clean",
    "deleted": "delete",
    "inspect": "inspect",
    "manage": "verify",
    "provide": "automated_clean",
    states.RESCUE: "rescue",
    "service": "service",
    "undeploy": "delete",
    "unrescue": "unrescue",
}
"""The conductor's flow for a verb. One that has none goes on with a flow, or changes a state and nothing more."""

_VALIDATED = frozenset(("inspect", states.RESCUE, "unrescue"))
"""Verbs that are refused where the interfaces of the node cannot do them. A deployment is validated with its steps."""

_SHADOW = sha512_crypt.using(rounds=100_000)
"""How /etc/shadow of every ramdisk may have a password: guessing is dear, and a request takes some 50 ms."""

_NOT_IN_MAINTENANCE = _DEPLOYS | {states.RESCUE, "unrescue"}


class Argument(NamedTuple):
    """A key of a provision request beside its target.

    :param verbs: the verbs that take it, each with the minor version from which on.
    """

    field: Field
    verbs: dict[str, int]


_STEPS = {"type": ["array", "null"]}
_DRIVE_PARTS: dict[str, Any] = {
    "meta_data": {"type": ["object", "string", "null"]},
    "network_data": {"type": ["object", "null"]},
    "user_data": {"type": ["object", "array", "string", "null"]},
    "vendor_data": {"type": ["object", "null"]},
}
_DRIVE = {"anyOf": [{"type": ["string", "null"]}, schemas.record(_DRIVE_PARTS)]}

ARGUMENTS: dict[str, Argument] = {
    argument.field.name: argument
    for argument in (
        Argument(Field("configdrive", kind=field_types.Kind(_DRIVE)), {states.ACTIVE: 1, "deploy": 1, "rebuild": 35}),
        Argument(Field("clean_steps", 15, field_types.Kind(steps.IN_ORDER)), {"clean": 15}),
        Argument(Field("rescue_password", 38, field_types.text()), {states.RESCUE: 38}),
        Argument(Field("deploy_steps", 69, field_types.Kind(steps.BY_PRIORITY)), dict.fromkeys(_DEPLOYS, 69)),
        Argument(Field("disable_ramdisk", 70, field_types.FLAG), {"clean": 70, "service": 108}),
        Argument(Field("service_steps", 87, field_types.Kind(steps.IN_ORDER)), {"service": 87}),
        Argument(
            Field("runbook", 92, field_types.Kind(field_types.TEXT.schema, field_types.ident)),
            {"clean": 92, "service": 92},
        ),
    )
}

_REQUIRED = {
    "clean": ("clean_steps", "runbook"),
    "service": ("service_steps", "runbook"),
    "rescue": ("rescue_password",),
}
"""Verbs that need an argument, and which will do."""

_ABORT_SINCE = {states.INSPECTWAIT: 41, states.DEPLOYWAIT: 110}
"""States from which ``abort`` is younger than the verb."""

_BODY = fields.Body(
    "provision request",
    (
        Field("target", kind=field_types.Kind({"type": ["string", "null"], "maxLength": 80}), required=True),
        *(argument.field for argument in ARGUMENTS.values()),
    ),
)

_READ = (*node_states.LOCK, "provision_state", "target_provision_state", "last_error", "flow", "run_id", "parent_node",
         "maintenance", "maintenance_reason", "protected", "protected_reason", "retired", "retired_reason")  # fmt: skip


_STEPS_WITH_RULE = frozenset(("clean_steps", "service_steps"))
_STEP_LISTS = _STEPS_WITH_RULE | {"deploy_steps"}


@operation(body=_BODY, answer=calls.EMPTY_202)
def set_provision(call: Call, node: str) -> Reply:
    verb = _verb(call)
    arguments = checked_arguments(call, verb, call.body)
    return calls.retried(lambda: _accept(call, _readable(call, node, arguments), verb, arguments))


def _readable(call: Call, given: str, arguments: dict[str, Any]) -> models.Node:
    """The node, if the request may ask for this, and with steps of its own."""
    node = api_nodes.read(call, given, *_READ)
    for name in _STEPS_WITH_RULE.intersection(arguments):
        call.access.require(f"{call.rule}:{name}", access.of_node(node))
    return node


def _verb(call: Call) -> str:
    target = call.body["target"]
    if target not in states.VERBS:
        allowed = ", ".join(sorted(name for name, verb in states.VERBS.items() if (verb.since or 1) <= call.minor))
        raise errors.Invalid(field="target", value=target, allowed=f"A provision request asks for one of: {allowed}.")
    if target != "undeploy" and (states.VERBS[target].since or 1) > call.minor:  # measured: undeploy has no version
        raise errors.VersionRefused(minor=states.VERBS[target].since)
    return str(target)


def checked_arguments(call: Call, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in a body that mean something, checked against the verb.

    :raises Invalid: one does not go with the verb, or one that it needs is missing.
    :raises VersionRefused: one is newer than the request's version.
    """
    given = {name: value for name, value in body.items() if name in ARGUMENTS and value not in (None, [], False)}
    for name in given:
        _check_verb(call, verb, name)
    accepted = _REQUIRED.get(verb, ())
    if accepted and not any(str(given.get(name, "")).strip() for name in accepted):
        raise errors.Invalid(
            f'A non-empty "{accepted[0]}" is required when setting target provision state to {verb}. Accepted: '
            f"{', '.join(accepted)}."
        )
    if "runbook" in given and f"{verb}_steps" in given:
        raise errors.Invalid(field="runbook", value=given["runbook"], allowed=f"Leave out this or {verb}_steps.")
    _check_drive(call, given.get("configdrive"))
    return {name: steps.with_numbers(value) if name in _STEP_LISTS else value for name, value in given.items()}


def _check_verb(call: Call, verb: str, name: str) -> None:
    """
    :raises Invalid: an argument does not go with the verb.
    """
    verbs = ARGUMENTS[name].verbs
    if verb not in verbs or verbs[verb] > call.minor:
        able = ", ".join(sorted(able for able, since in verbs.items() if since <= call.minor))
        raise errors.Invalid(f'"{name}" is only valid when setting target provision state to {able}, not {verb}.')


def _check_drive(call: Call, drive: dict[str, Any] | str | None) -> None:
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


def _accept(call: Call, node: models.Node, verb: str, arguments: dict[str, Any]) -> Reply:
    reached = _reached(node, verb)
    if verb == "abort" and node.provision_state not in states.FAILED:
        return _abort(call, node)
    _refuse(node, verb)
    if verb == "abort":
        # The machine of a failed service may be in the agent: it is given back on the way to where the verb leads.
        _hand_over(call, node, verb, states.SERVICING, arguments)
    elif verb in FLOWS and (verb != "manage" or node.provision_state == states.ENROLL):
        _hand_over(call, node, verb, reached, arguments)
    elif verb == "unhold":
        _unhold(call, node, reached)
    else:
        # Nothing has to be done: manage from a state of rest.
        rest = {"flow": None, "due_at": None}
        api_nodes.accept(call, node, _moved(reached, states.TARGETS.get(reached)) | rest)
    return calls.accepted(call, f"/v1/nodes/{node.uuid}/states")


def _reached(node: models.Node, verb: str) -> str:
    """The state that a verb leads to from that of the node.

    :raises NodeLocked: a conductor works on the node, and would have to be interrupted.
    :raises Conflict: steps of its parent run on it.
    :raises StateTransitionRefused: the verb leads nowhere.
    """
    reached = states.asked_for(node.provision_state, verb)
    if node.reservation is not None and (verb != "abort" or reached is None):
        raise nodes.locked_error(node)
    if node.flow is not None:
        node_rules.refuse_lent(node, f"asked to {verb}")
    if reached is None:
        possible = ", ".join(states.allowed_verbs(node.provision_state)) or "waiting"
        raise errors.StateTransitionRefused(action=verb, node=node.uuid, state=node.provision_state, possible=possible)
    return reached


def _abort(call: Call, node: models.Node) -> Reply:
    since = _ABORT_SINCE.get(node.provision_state, 1)
    if call.minor < since:
        raise errors.VersionRefused(minor=since)
    # No lock is needed: whoever works on the node sees the wish at its next safe point.
    wish = {"abort_requested": True, "due_at": clock.now()}
    api_nodes.accept(call, node, wish, why="abort", locked=True)
    return calls.accepted(call, f"/v1/nodes/{node.uuid}/states")


def _unhold(call: Call, node: models.Node, reached: str) -> None:
    """The flow goes on where it was held, and where it was going to."""
    values = _moved(reached, node.target_provision_state) | {"due_at": clock.now()}
    api_nodes.accept(call, node, values, why="unhold")


def _refuse(node: models.Node, verb: str) -> None:
    if verb in _NOT_IN_MAINTENANCE and node.maintenance:
        raise errors.InMaintenance(action=verb, node=node.uuid, reason=node.maintenance_reason or "no reason was given")
    if verb in ("rebuild", "deleted", "undeploy"):
        node_rules.refuse_protected(node, {"rebuild": "rebuilt"}.get(verb, "undeployed"))
    if verb == "provide" and node.retired:
        raise errors.Invalid(
            f"Node {node.uuid} is retired ({node.retired_reason or 'no reason given'}) and cannot be provided: set "
            "retired to false first."
        )


def _moved(state: str, target: str | None) -> dict[str, Any]:
    return {
        "provision_state": state,
        "target_provision_state": target,
        "provision_updated_at": clock.now(),
        "last_error": None,
    }


def flow_request(call: Call, node: models.Node, verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the flow of a verb works with: runbooks and names of children have been looked up.

    :param node: needs id and uuid.
    :param arguments: as :func:`checked_arguments` gives them.
    :raises NotFound: there is no such runbook.
    :raises Invalid: a runbook or child does not belong to the node.
    """
    request = {name: value for name, value in arguments.items() if name != "runbook"}
    if "rescue_password" in request:  # the user's own word goes no further than this
        request["rescue_password"] = _SHADOW.hash(request["rescue_password"])
    if "runbook" in arguments:
        runbook = runbooks.for_node(call, arguments["runbook"], node)
        request[f"{verb}_steps"] = sorted(runbook.steps, key=lambda step: int(step["order"]))
        request["disable_ramdisk"] = runbook.disable_ramdisk or "disable_ramdisk" in arguments
        request["origin"] = f"runbook {runbook.name}"
    elif f"{verb}_steps" in request:
        request[f"{verb}_steps"] = children.resolved(call, node, f"{verb}_steps", request[f"{verb}_steps"])
    return request


def _hand_over(call: Call, node: models.Node, verb: str, reached: str, arguments: dict[str, Any]) -> None:
    """Writes the work into the node's row and rings its conductor."""
    request = flow_request(call, node, verb, arguments)
    drive = {"configdrive": None} if verb in _DEPLOYS and verb != "rebuild" else {}
    if isinstance(request.get("configdrive"), str) and not _is_url(request["configdrive"]):
        drive = {"configdrive": request.pop("configdrive")}
    if verb in _DEPLOYS:
        request["rebuild"] = verb == "rebuild"
        call.client.call(call.ctx, node, "validate_deploy", request=request)
    elif verb in _VALIDATED:
        call.client.call(call.ctx, node, "validate_flow", flow=FLOWS[verb])
    if node.run_id is not None:  # what waits now is cut off
        request["replaces"] = {"flow": node.flow, "run": node.run_id}
    if call.ctx.user_id is not None:  # for the history of the node
        request["asked_by"] = {"user": call.ctx.user_id, "project": call.ctx.project_id}
    # A manual cleaning goes back to where it came from; every other way has its target from the table of states.
    target = states.MANAGEABLE if verb == "clean" else states.TARGETS.get(reached)
    asked = {
        "flow": FLOWS[verb],
        "request": request,
        "abort_requested": False,
        "due_at": clock.now(),
        "run_id": None,
    }
    api_nodes.accept(call, node, _moved(reached, target) | asked | drive, why=verb)
