"""The plan of a flow before it is asked for: steps in their order, and all that is wrong with them.

Takes what a provision request takes, without its target. Under /ingot/v1, as the timeline, which has the same steps
afterwards.
"""

from collections.abc import Collection

from ingot.api.nodes import nodes, provision
from ingot.api.nodes.verbs import ARGUMENTS, VERBS, Verb
from ingot.api.web import fields, schemas
from ingot.api.web.call import Answer, Call, Plain, Reply, operation
from ingot.api.web.params import Param
from ingot.common import errors
from ingot.common.json_types import Json

_PLANS = frozenset(verb.plan for verb in VERBS.values() if verb.plan)
"""What ``flow`` may be."""


def _check_flow(name: str, given: str) -> str:
    if given not in _PLANS:
        raise errors.Invalid(field=name, value=given, allowed=f"Plans are made for: {', '.join(sorted(_PLANS))}.")
    return given


def _find_verb(flow: str, body: Collection[str]) -> Verb:
    """Return the verb that is planned: for an empty body the one that takes no arguments, where there is one."""
    verbs = sorted((verb for verb in VERBS.values() if verb.plan == flow), key=lambda verb: len(verb.arguments))
    return verbs[-1] if body else verbs[0]


_FLOW = Param("flow", _check_flow)

_BODY = fields.Body(
    "plan request",
    (field for name, field in ARGUMENTS.items() if any(name in verb.arguments for verb in VERBS.values() if verb.plan)),
)


_STEP = schemas.complete(
    {
        **dict.fromkeys(("interface", "step", "origin", "runner"), schemas.TEXT),
        **dict.fromkeys(("abortable", "requires_ramdisk", "reboot_requested", "presumed"), schemas.FLAG),
        "priority": {"type": "number"},
        "args": {"type": "object"},
    }
)
_PLAN = Answer(
    shows=Plain(
        schemas.complete(
            {
                "node_uuid": schemas.TEXT,
                "flow": {"enum": sorted(_PLANS)},
                "steps": {"type": "array", "items": _STEP},
                "in_band_steps_known": schemas.FLAG,
                "errors": {"type": "array", "items": schemas.TEXT},
            }
        )
    )
)


@operation(_FLOW, answer=_PLAN)
def show(call: Call, node: str) -> Reply:
    """The plan of a request without arguments."""
    return _answer(call, node)


@operation(_FLOW, body=_BODY, answer=_PLAN)
def create(call: Call, node: str) -> Reply:
    """The plan of a request; nothing is created but the answer."""
    return _answer(call, node)


def _answer(call: Call, ident: str) -> Reply:
    if "flow" not in call.query:
        raise errors.Invalid(f"Say what to plan: send flow=, one of {', '.join(sorted(_PLANS))}.")
    flow = call.query["flow"]
    body = call.body or {}
    verb = _find_verb(flow, body)
    arguments = provision.check_arguments(call, verb, body)
    node = nodes.read(call, ident, "uuid", "driver", "conductor_group")
    request = provision.build_request(call, node, verb, arguments)
    request.pop("configdrive", None)  # megabytes, and no plan depends on it
    request.pop("rescue_password", None)  # a secret, likewise
    plan: Json = call.client.call(call.ctx, node, "get_plan", flow=verb.flow, request=request)
    return Reply({"node_uuid": node.uuid, "flow": flow, **plan})
