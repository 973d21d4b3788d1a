"""What a user may do: for clients that show what they may not as disabled, with the reason."""

from ingot.api.auth.access import NO_TARGET, Facts, Target, build_node_target
from ingot.api.auth.rules import EVERY
from ingot.api.nodes import nodes
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation

_OWN = ("node.owner", "node.lessee", "allocation.owner", "runbook.owner")
"""What rules compare a project with; all of these are its own where no node is named."""

_RULE = fields.complete_schema({"allowed": fields.FLAG_SCHEMA, "reason": fields.OPTIONAL_TEXT_SCHEMA})


@operation(
    Param("node", operations.parse_filled),
    answer=Answer(
        shows=Plain(fields.complete_schema({"rules": {"type": "object", "additionalProperties": _RULE}})),
    ),
)
def index(call: Call) -> Reply:
    """Show for each rule of policy whether it allows the user what it is for, and why not.

    With ``node`` that is for one node; without, for the best that the user could find: a node of the own project.
    """
    target = _read_target(call)
    reasons = {rule.name: call.access.explain(rule.name, target) for rule in EVERY}
    return Reply({"rules": {name: {"allowed": why is None, "reason": why} for name, why in reasons.items()}})


def _read_target(call: Call) -> Target:
    """Return what rules compare the user with.

    :raises NotFound: there is no such node, or none that the user may see.
    """
    project = call.ctx.project_id
    own: Facts = tuple((name, project) for name in _OWN) if project else ()
    if "node" not in call.query:
        return Target("", own) if own else NO_TARGET
    node = build_node_target(nodes.read(call, call.query["node"], rule="baremetal:node:get"))
    return Target(node.noun, (*node.facts, *own[2:]))
