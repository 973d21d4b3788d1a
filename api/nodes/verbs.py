"""The verbs of ``PUT /v1/nodes/<id>/states/provision``: one record says everything that the API knows of each.

A new verb is one more record here. What it does stands in the conductor's record of its flow, and where it leads a node
in the table of transitions (``common/states.py``).
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from ingot.api.nodes import node_rules, steps
from ingot.api.web import fields
from ingot.api.web.fields import Field
from ingot.common import clock, errors, states
from ingot.common.json_types import FlowRequest
from ingot.db import maintenance, models

Columns = Mapping[str, object]
"""Columns of a node with the values to write."""

_DRIVE_PARTS = {
    "meta_data": {"type": ["object", "string", "null"]},
    "network_data": {"type": ["object", "null"]},
    "user_data": {"type": ["object", "array", "string", "null"]},
    "vendor_data": {"type": ["object", "null"]},
}
_DRIVE = {"anyOf": [{"type": ["string", "null"]}, fields.object_schema(_DRIVE_PARTS)]}

ARGUMENTS: Mapping[str, Field] = {
    field.name: field
    for field in (
        Field("configdrive", type=fields.FieldType(_DRIVE)),
        Field("clean_steps", 15, steps.IN_ORDER),
        Field("rescue_password", 38, fields.text()),
        Field("deploy_steps", 69, steps.BY_PRIORITY),
        Field("disable_ramdisk", 70, fields.FLAG),
        Field("service_steps", 87, steps.OF_SERVICE),
        Field("runbook", 92, fields.FieldType(fields.TEXT.schema, fields.parse_ident)),
    )
}
"""The keys of a provision request beside its target, with the API version that brought each."""


def enter(state: str, target: str | None) -> Columns:
    """Return what a node that a client moves to a state shows."""
    now = clock.now()
    return {
        "provision_state": state,
        "target_provision_state": target,
        "provision_updated_at": now,
        "last_error": None,
    }


def _enter_rest(_node: models.Node, reached: str) -> Columns:
    return {**enter(reached, states.TARGETS.get(reached)), "flow": None, "due_at": None}


def _request_abort(_node: models.Node, _reached: str) -> Columns:
    """Return the columns of an abort: the conductor that works on the node sees it at its next safe point."""
    return {"abort_requested": True, "due_at": clock.now()}


def _continue_held(node: models.Node, reached: str) -> Columns:
    """Return the columns with which the flow goes on where it was held, to where it was going."""
    return {**enter(reached, node.target_provision_state), "due_at": clock.now()}


def _refuse_in_maintenance(node: models.Node, verb: str) -> None:
    if node.maintenance:
        raise errors.InMaintenance(action=verb, node=node.uuid, reason=node.maintenance_reason or "no reason was given")


def _refuse_in_other_maintenance(node: models.Node, verb: str) -> None:
    """Refuse steps in maintenance, unless it is for the failure alone that they are to end."""
    own = states.FAULTS.get(node.provision_state, "")
    holds = maintenance.read_holds(node)
    others = [hold for hold in holds if maintenance.raises_flag(hold) and hold["fault"] != own]
    if others:
        reason = others[-1]["reason"] or "no reason was given"
        raise errors.InMaintenance(action=verb, node=node.uuid, reason=reason)


def _refuse_protected(node: models.Node, verb: str) -> None:
    node_rules.refuse_protected(node, "rebuilt" if verb == "rebuild" else "undeployed")


def _refuse_retired(node: models.Node, _verb: str) -> None:
    if node.retired:
        raise errors.Invalid(
            f"Node {node.uuid} is retired ({node.retired_reason or 'no reason given'}) and cannot be provided: set "
            "retired to false first."
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What a client may ask for.

    :param name: the target of the request.
    :param event: the event of the state machine.
    :param since: minor API version that brought the verb.
    :param since_in: states from which the verb is younger than that.
    :param flow: the conductor's flow that the verb begins.
    :param flow_in: the states in which it begins one; in others the verb only writes ``columns_else``.
    :param columns_else: what the verb writes where it begins no flow, by node and the state reached; ``due_at`` says
        whether the conductor has anything to do.
    :param interrupts: whether the verb is accepted while a conductor holds the lock.
    :param arguments: the arguments that it takes, each with the minor API version from which on.
    :param needs: arguments of which one is needed.
    :param validation: the RPC call by which the node's conductor validates the request.
    :param refuse: check the node beyond its state; raise what refuses the verb.
    :param plan: the name of the flow in plans. Of two verbs with one name, that without arguments is what an empty
        request plans.
    :param request: what the flow's request holds beside the arguments.
    :param columns: columns that are written with the acceptance, beside those of every verb.
    :param state: the state in which the flow begins, if not the one that the transitions lead to.
    :param target: where the node is heading, if not where the table of states says.
    """

    name: str
    event: str
    since: int = 1
    since_in: Mapping[str, int] = dataclasses.field(default_factory=dict)
    flow: str | None = None
    flow_in: Collection[str] = states.ALL
    columns_else: Callable[[models.Node, str], Columns] = _enter_rest
    interrupts: bool = False
    arguments: Mapping[str, int] = dataclasses.field(default_factory=dict)
    needs: tuple[str, ...] = ()
    validation: Literal["validate_deploy", "validate_flow"] | None = None
    refuse: tuple[Callable[[models.Node, str], None], ...] = ()
    plan: str | None = None
    request: FlowRequest = dataclasses.field(default_factory=lambda: FlowRequest())
    columns: Columns = dataclasses.field(default_factory=dict)
    state: str | None = None
    target: str | None = None

    def takes(self, argument: str, minor: int) -> bool:
        """Return whether the verb takes an argument in a minor API version."""
        return argument in self.arguments and self.arguments[argument] <= minor


_DEPLOY = Verb(
    name=states.ACTIVE,
    event="deploy",
    flow="deploy",
    arguments={"configdrive": 1, "deploy_steps": 69},
    validation="validate_deploy",
    refuse=(_refuse_in_maintenance,),
    plan="deploy",
    request={"rebuild": False},
    columns={"configdrive": None},
)
_DELETE = Verb(name="deleted", event="delete", flow="delete", refuse=(_refuse_protected,))

VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        _DEPLOY,
        dataclasses.replace(_DEPLOY, name="deploy", since=73, plan=None),
        dataclasses.replace(
            _DEPLOY,
            name="rebuild",
            event="rebuild",
            arguments={"configdrive": 35, "deploy_steps": 69},
            refuse=(_refuse_in_maintenance, _refuse_protected),
            plan=None,
            request={"rebuild": True},
            columns={},
        ),
        _DELETE,
        dataclasses.replace(_DELETE, name="undeploy"),  # measured: it has no version
        Verb(
            name="abort",
            event="abort",
            since=13,
            since_in={states.INSPECTWAIT: 41, states.DEPLOYWAIT: 110},
            # The machine of a failed service may be in the agent: it is given back on the way to where the verb leads.
            flow="leave_service",
            flow_in=states.FAILED,
            state=states.SERVICING,
            columns_else=_request_abort,
            interrupts=True,
        ),
        Verb(name="adopt", event="adopt", since=17, flow="adopt", plan="adopt"),
        Verb(
            name="clean",
            event="clean",
            since=15,
            flow="manual_clean",
            arguments={"clean_steps": 15, "disable_ramdisk": 70, "runbook": 92},
            needs=("clean_steps", "runbook"),
            refuse=(_refuse_in_other_maintenance,),
            plan="clean",
            target=states.MANAGEABLE,  # back to where it came from
        ),
        Verb(name="inspect", event="inspect", since=6, flow="inspect", validation="validate_flow", plan="inspect"),
        Verb(name="manage", event="manage", since=4, flow="verify", flow_in=(states.ENROLL,)),
        Verb(name="provide", event="provide", since=4, flow="automated_clean", refuse=(_refuse_retired,), plan="clean"),
        Verb(
            name=states.RESCUE,
            event="rescue",
            since=38,
            flow="rescue",
            arguments={"rescue_password": 38},
            needs=("rescue_password",),
            validation="validate_flow",
            refuse=(_refuse_in_maintenance,),
            plan="rescue",
        ),
        Verb(
            name="service",
            event="service",
            since=87,
            flow="service",
            arguments={"service_steps": 87, "runbook": 92, "disable_ramdisk": 108},
            needs=("service_steps", "runbook"),
            refuse=(_refuse_in_other_maintenance,),
            plan="service",
        ),
        Verb(name="unhold", event="unhold", since=85, columns_else=_continue_held),
        Verb(
            name="unrescue",
            event="unrescue",
            since=38,
            flow="unrescue",
            validation="validate_flow",
            refuse=(_refuse_in_maintenance,),
            plan="unrescue",
        ),
    )
}


def find_allowed(state: str) -> list[str]:
    """Return the names of the verbs that a client may use on a node in a state, sorted."""
    return sorted(verb.name for verb in VERBS.values() if states.requested_state(state, verb.event))
