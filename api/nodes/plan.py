"""The plan of a flow before it is requested: steps in their order, and all that is wrong with them.

Takes what a provision request takes, without its target. Under /ingot/v1, as the timeline, which has the same steps
afterwards.
"""

from collections.abc import Collection

from ingot.api.nodes import nodes, provision
from ingot.api.nodes.verbs import ARGUMENTS, VERBS, Verb
from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.common.json_types import Json

_PLANS = frozenset(verb.plan for verb in VERBS.values() if verb.plan)
"""What ``flow`` may be."""


def _find_verb(flow: str, body: Collection[str]) -> Verb:
    """Return the verb that is planned: for an empty body the one that takes no arguments, where there is one."""
    verbs = sorted((verb for verb in VERBS.values() if verb.plan == flow), key=lambda verb: len(verb.arguments))
    return verbs[-1] if body else verbs[0]


_FLOW = Param("flow", nodes.build_choice(_PLANS))

_BODY = fields.Body(
    "plan request",
    (field for name, field in ARGUMENTS.items() if any(name in verb.arguments for verb in VERBS.values() if verb.plan)),
)

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


@operation(_FLOW, body=_BODY, answer=Answer(shows=Plain(_PLAN)))
def create(call: Call, node: str) -> Reply:
    """Show the plan of a request; nothing is created but the answer."""
    if "flow" not in call.query:
        raise errors.Invalid(f"Say what to plan: send flow=, one of {', '.join(sorted(_PLANS))}.")
    flow = call.query["flow"]
    body = call.body or {}
    verb = _find_verb(flow, body)
    arguments = provision.check_arguments(call, verb, body)
    found = nodes.read(call, node, "uuid", "driver", "conductor_group")
    request = provision.build_request(call, found, verb, arguments)
    request.pop("configdrive", None)  # megabytes, and no plan depends on it
    request.pop("rescue_password", None)  # a secret, likewise
    plan: Json = call.client.call(call.ctx, found, "get_plan", flow=verb.flow, request=request)
    return Reply({"node_uuid": found.uuid, "flow": flow, **plan})


@operation(_FLOW, answer=Answer(shows=Plain(_PLAN)))
def show(call: Call, node: str) -> Reply:
    """Show the plan of a request without arguments."""
    return create.handler(call, node)
